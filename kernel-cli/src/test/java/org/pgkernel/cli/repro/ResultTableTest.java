package org.pgkernel.cli.repro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.pgkernel.bufmgr.DropDecision;
import org.pgkernel.bufmgr.DropKind;
import org.pgkernel.bufmgr.DropPath;
import org.pgkernel.bufmgr.DropReason;
import org.pgkernel.bufmgr.DropStopReason;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.cli.SharedBuffers;

class ResultTableTest {
    private static Measurement run(
            DropStrategy strategy, int repetition, double seconds, long different) {
        Cell cell = new Cell(Operation.TRUNCATE, false, SharedBuffers.parse("10GB"), strategy);
        boolean scan = strategy == DropStrategy.FULL_SCAN;
        return new Measurement(
                cell,
                repetition,
                seconds,
                seconds / 2,
                0.25,
                List.of(decision(scan, 200)),
                1000,
                different);
    }

    private static DropDecision decision(boolean scan, long calls) {
        return new DropDecision(
                DropKind.RELATIONS,
                scan ? DropPath.FULL_SCAN : DropPath.LOOKUP,
                scan ? DropReason.ONLY_WAY : DropReason.FEW_BLOCKS,
                scan ? DropStopReason.SCAN_COMPLETE : DropStopReason.RANGE_COVERED,
                calls,
                scan ? 0 : 7 * calls,
                scan ? 1_000_000 * calls : 0,
                7 * calls,
                1_000_000);
    }

    private static String lineOf(String table, String who) {
        return table.lines()
                .filter(line -> line.contains(who))
                .findFirst()
                .orElseThrow()
                .strip()
                .replaceAll(" {2,}", "|");
    }

    @Test
    void aRowHasPublishedFiguresMedianAndRatioToTheScan() {
        ResultTable table = new ResultTable(200);
        table.add(
                List.of(
                        run(DropStrategy.FULL_SCAN, 1, 4, 0),
                        run(DropStrategy.LOOKUP, 1, 0.9, 0),
                        run(DropStrategy.LOOKUP, 2, 1.0, 0),
                        run(DropStrategy.LOOKUP, 3, 7.0, 0)),
                List.of(
                        new RivalMeasurement(
                                "PostgreSQL 15.7",
                                Operation.TRUNCATE,
                                false,
                                SharedBuffers.parse("10GB"),
                                1,
                                2)));
        String text = table.render();
        assertEquals(
                "TRUNCATE|no|10GB|92.680|3.975|FULL_SCAN|4.000|2.000|20000|1.000|200 full scan|0|200.0|0.250|1000 of 1000",
                lineOf(text, "  FULL_SCAN"));
        assertEquals(
                "TRUNCATE|no|10GB|92.680|3.975|LOOKUP|1.000|0.500|5000|0.250|200 lookup|1400|0.0|0.250|3000 of 3000",
                lineOf(text, "LOOKUP"));
        assertTrue(lineOf(text, "PostgreSQL 15.7").contains("|2.000|10000|0.500|"), text);
    }

    @Test
    void aDifferentPageStandsOut() {
        ResultTable table = new ResultTable(200);
        table.add(List.of(run(DropStrategy.LOOKUP, 1, 1, 3)), List.of());
        assertTrue(lineOf(table.render(), "LOOKUP").endsWith("997 of 1000 !"));
    }

    @Test
    void csvHasTheAgreedColumns() {
        assertEquals(
                "operation,toast,base,shared_buffers,nbuffers,strategy,tables,repetition,seconds,drop_seconds,checkpoint_seconds,pages_compared,pages_different",
                Measurement.CSV_HEADER);
        assertEquals(
                "TRUNCATE,no,after-load,10GB,1310720,LOOKUP,200,2,1.500000,0.750000,0.250000,1000,0",
                run(DropStrategy.LOOKUP, 2, 1.5, 0).csv(BaseKind.AFTER_LOAD, 200));
    }

    @Test
    void publishedFiguresAreTheThreads() {
        PublishedFigures published = new PublishedFigures();
        assertEquals(
                new PublishedFigures.Figure(82.443, 2.627),
                published.find(Operation.VACUUM, "10GB"));
        assertEquals(null, published.find(Operation.VACUUM, "100GB"));
    }

    @Test
    void onlyWhatWasDecidedAfterThePauseCounts() {
        assertEquals(
                List.of(decision(false, 3)),
                FailoverRun.since(
                                List.of(decision(true, 5), decision(false, 2)),
                                List.of(decision(true, 5), decision(false, 5)))
                        .stream()
                        .map(d -> decision(d.path() == DropPath.FULL_SCAN, d.calls()))
                        .toList());
    }

    @Test
    void anExplanationNamesPathReasonAndEndOfEachClass() {
        String text = ReproCommand.explanation(List.of(run(DropStrategy.LOOKUP, 1, 1, 0)));
        assertTrue(text.contains("TRUNCATE plain 10GB LOOKUP, repetition 1"), text);
        assertTrue(text.contains("relations: lookup (few blocks), range covered: 200 calls"), text);
        assertTrue(text.contains("5.0 us a call"), text);
    }
}
