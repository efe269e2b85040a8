package org.pgkernel.cli.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.pgkernel.cli.Main;
import picocli.CommandLine;

class ReplacementCommandTest {
    @TempDir Path directory;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int run(String... arguments) {
        CommandLine line = Main.commandLine();
        line.setOut(new PrintWriter(out, true));
        line.setErr(new PrintWriter(err, true));
        String[] all = new String[arguments.length + 2];
        all[0] = "bench";
        all[1] = "replacement";
        System.arraycopy(arguments, 0, all, 2, arguments.length);
        return line.execute(all);
    }

    private String file(String text) throws IOException {
        return Files.writeString(directory.resolve("trace.txt"), text).toString();
    }

    /** Twenty pages in order, three times, and page 0 after every fourth. */
    private static String loop(String separator) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 60; i++) {
            page(text, i % 20, separator);
            if (i % 4 == 3) {
                page(text, 0, separator);
            }
        }
        return text.toString();
    }

    private static void page(StringBuilder text, int block, String separator) {
        text.append(String.join(separator, "1663", "5", "16384", "0", "" + block)).append('\n');
    }

    private static final String GOLDEN =
            """
            trace      pages  pool  pool/pages  CLOCK_SWEEP   SIEVE  S3_FIFO     MIN
            ---------  -----  ----  ----------  -----------  ------  -------  ------
            trace.txt     20    16      80.00%       22.67%  22.67%   41.33%  62.67%
            trace.txt     20    20     100.00%       73.33%  73.33%   73.33%  73.33%
            """;

    @Test
    void aSmallTraceGivesThisTable() throws IOException {
        assertEquals(
                0, run("--trace", file(loop(" ")), "--pool", "80%,20", "--no-timing"), "" + err);
        assertEquals(GOLDEN, out.toString());
        assertEquals("", err.toString());
    }

    @Test
    void commasCommentsEmptyLinesAndAHeadAreAllowed() throws IOException {
        String text = "spc,db,rel,fork,block\n# a comment\n\n" + loop(" , ") + "\n";
        assertEquals(0, run("--trace", file(text), "--pool", "80%,20", "--no-timing"), "" + err);
        assertEquals(GOLDEN, out.toString());
    }

    @Test
    void theSameSeedGivesTheSameTable() {
        String[] arguments = {
            "--pages", "500", "--uses", "5000", "--seed", "9", "--pool", "10%", "--no-timing"
        };
        assertEquals(0, run(arguments), "" + err);
        String first = out.toString();
        out.getBuffer().setLength(0);
        assertEquals(0, run(arguments));
        assertEquals(first, out.toString());
        assertEquals(2 + GeneratedTrace.values().length, first.lines().count());
    }

    @Test
    void theRingKeepsWhatAScanWouldPushOut() {
        assertEquals(
                0,
                run(
                        "--generate=scan,scan-ring",
                        "--pages=2000",
                        "--uses=40000",
                        "--pool=20%",
                        "--policy=clock_sweep",
                        "--no-timing"),
                "" + err);
        List<String> rows = out.toString().lines().skip(2).toList();
        double without = Double.parseDouble(rows.get(0).split(" +")[4].replace("%", ""));
        double with = Double.parseDouble(rows.get(1).split(" +")[4].replace("%", ""));
        assertTrue(with > without, rows.toString());
    }

    @Test
    void victimSearchesAreTimedAndFiguresWritten() throws IOException {
        Path csv = directory.resolve("figures.csv");
        assertEquals(
                0,
                run(
                        "--generate=loop",
                        "--pages=500",
                        "--uses=5000",
                        "--pool=10%",
                        "--policy=SIEVE",
                        "--csv=" + csv),
                "" + err);
        List<String> lines = Files.readAllLines(csv);
        assertEquals(ReplacementResult.CSV_HEADER, lines.get(0));
        assertTrue(
                lines.get(1).matches("loop,500,5000,50,SIEVE,0,5000,0\\.000000,4950,[0-9.]+"),
                lines.get(1));
        assertEquals("loop,500,5000,50,MIN,450,4550,0.090000,0,", lines.get(2));
        assertEquals(3, lines.size());
        assertTrue(out.toString().contains("ns SIEVE"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "1663 5 16384 0|has 4 fields",
                "1663 5 16384 0 1 7|has 6 fields",
                "1663 5 x 0 1|has \"x\" where a number is due",
                "1663 5 16384 4 1|fork is not between 0 and 3",
                "1663 5 16384 0 4294967295|block is not between 0 and 4294967294",
                "-1 5 16384 0 1|spc is not between 0 and 4294967295",
                "1663 5 16384 0 99999999999999999999|where a number is due"
            })
    void aBadLineIsOneSentenceWithItsNumber(String bad, String why) throws IOException {
        assertEquals(1, run("--trace", file(loop(" ") + bad + "\n")));
        assertEquals(1, err.toString().strip().lines().count(), err.toString());
        assertTrue(err.toString().contains("line 76 of the trace"), err.toString());
        assertTrue(err.toString().contains(why), err.toString());
        assertTrue(err.toString().contains("file="), err.toString());
        assertEquals("", out.toString());
    }

    @Test
    void aTraceThatIsMissingEmptyOrNoTextIsOneSentence() throws IOException {
        assertEquals(1, run("--trace", directory.resolve("none").toString()));
        assertTrue(err.toString().contains("there is no such file"), err.toString());
        assertEquals(1, run("--trace", file("# nothing\n")));
        assertTrue(err.toString().contains("the trace is empty"), err.toString());
        Path binary = Files.write(directory.resolve("binary"), new byte[] {(byte) 0xFF, 0, 1});
        assertEquals(1, run("--trace", binary.toString()));
        assertTrue(err.toString().contains("the trace is no text"), err.toString());
        assertEquals(3, err.toString().strip().lines().count(), err.toString());
    }

    @Test
    void figuresThatCannotBeWrittenAreRefusedBeforeTheRun() {
        Path csv = directory.resolve("missing/figures.csv");
        assertEquals(1, run("--generate=loop", "--csv", csv.toString()));
        assertEquals(
                "pgkernel: the figures cannot be written there: file=" + csv,
                err.toString().strip());
        assertFalse(Files.exists(csv));
    }
}
