package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.testkit.Fault;
import org.pgkernel.testkit.SimulatedCrash;
import org.pgkernel.testkit.SimulatedDisk;

/** WAL-16: what was flushed survives every crash, and the log goes on behind it. */
class WalInsertCrashTest {
    @Test
    @DisplayName("C24, C25 1: every crash of a short life, and a second life after it")
    void whatWasFlushedIsThereAfterEveryCrash() {
        int runs = 0;
        for (long seed = 1; seed <= 6; seed++) {
            runs +=
                    WalInsertCrashRun.search("wal-insert", seed, 40, new WalInserter.Parts())
                            .outcomes(6)
                            .run();
        }
        assertTrue(runs > 500, "runs " + runs);
    }

    /** Acknowledged is durable, whoever led the flush. */
    @Property(tries = 60)
    void whatAnyOfFourCommittersWasToldIsThereAfterACrash(
            @ForAll long seed, @ForAll @IntRange(min = 8, max = 150) int call) {
        String directory = "/wal";
        int segment = 1 << 14;
        long start = segment + WalPageHeader.LONG_SIZE;
        SimulatedDisk disk = new SimulatedDisk(seed).directories(directory);
        disk.plan(Fault.crashAtChange(call));
        AtomicLong told = new AtomicLong(start);
        WalInserter inserter =
                new WalInserter(
                        disk, directory, 1, segment, WalLog.SYSTEM, start, 0, 0, 0, 1 << 14);
        List<Boolean> crashed =
                InsertThreads.run(
                        4,
                        thread -> {
                            RandomRecords records = new RandomRecords(seed + thread);
                            try {
                                for (int i = 0; i < 40; i++) {
                                    long end = inserter.insert(records.next(3_000));
                                    inserter.flush(end);
                                    told.accumulateAndGet(end, Math::max);
                                }
                                return false;
                            } catch (SimulatedCrash | KernelStoppedException e) {
                                return true;
                            }
                        });
        if (!crashed.contains(true)) {
            disk.crash();
        }
        SimulatedDisk found = disk.restart(seed);
        try (WalReader reader =
                new WalReader(found, directory, TimelineHistory.of(1), segment, WalLog.SYSTEM)) {
            reader.begin(start);
            while (reader.next() != null) {
                // reading checks each record
            }
            assertTrue(
                    reader.endOfLastRecord() >= told.get(),
                    () -> "seed=" + seed + " told " + told + " " + reader.end());
        }
    }
}
