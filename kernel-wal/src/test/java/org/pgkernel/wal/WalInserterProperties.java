package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/** The reader and the single-threaded writer are the judges of what the inserter writes. */
class WalInserterProperties {
    /** WAL-6, WAL-13. */
    @Property(tries = 40)
    void oneThreadWritesTheBytesThatTheWriterWrites(
            @ForAll long seed,
            @ForAll @IntRange(min = 1, max = 60) int count,
            @ForAll @IntRange(min = 13, max = 17) int segmentBits,
            @ForAll @IntRange(min = 14, max = 17) int ringBits)
            throws IOException {
        try (WalLog log = new WalLog(1 << segmentBits);
                WalLog model = new WalLog(1 << segmentBits);
                WalWriter writer = model.writer();
                WalInserter inserter = log.inserter(1 << ringBits)) {
            Random random = new Random(seed);
            RandomRecords records = new RandomRecords(seed);
            for (int i = 0; i < count; i++) {
                WalRecordBuilder record = records.next(60_000);
                if (random.nextInt(12) == 0 && i > 0) {
                    record.begin(0, WalRecordFormat.XLOG_SWITCH, 0);
                    if (inserter.insertLsn() % log.segmentSize == 0) {
                        continue;
                    }
                }
                boolean isSwitch = record.isSwitch();
                long end = writer.append(record);
                long inserted = inserter.insert(record);
                assertEquals(writer.lastRecord(), record.startLsn());
                assertEquals(writer.lastRecord(), inserter.lastRecord());
                assertEquals(end, inserter.insertLsn());
                assertTrue(isSwitch || end == inserted);
                if (random.nextInt(4) == 0) {
                    writer.flush();
                    inserter.flush(inserter.insertLsn());
                }
            }
            writer.flush();
            inserter.flush(inserter.insertLsn());
            assertSameFiles(model, log);
        }
    }

    /** WAL-13, WAL-14. */
    @Property(tries = 25)
    void whateverEightThreadsInsertIsReadBack(
            @ForAll long seed,
            @ForAll @IntRange(min = 13, max = 18) int segmentBits,
            @ForAll @IntRange(min = 14, max = 18) int ringBits) {
        try (WalLog log = new WalLog(1 << segmentBits);
                WalInserter inserter = log.inserter(1 << ringBits)) {
            assertReadBack(log, insertFrom(inserter, 8, 60, 9_000, seed), seed);
        }
    }

    /** WAL-6: sizes that end just before, at and behind a border, in segments of real sizes. */
    @Property(tries = 24)
    void recordsAroundSegmentBordersAreReadBack(
            @ForAll @IntRange(min = 20, max = 26) int segmentBits,
            @ForAll @IntRange(min = 1, max = 40) int wordsBefore,
            @ForAll @IntRange(min = -8, max = 70) int beyond) {
        try (WalLog log = new WalLog(1 << segmentBits)) {
            long border = 2L * log.segmentSize;
            long start = border - 8L * wordsBefore;
            try (WalInserter inserter =
                    log.inserter(start, log.start, 1 << 16, new WalInserter.Parts())) {
                long first =
                        inserter.insert(WalLog.plain(Math.max(1, 8 * wordsBefore - 26 + beyond)));
                long second = inserter.insert(WalLog.plain(9_000));
                inserter.flush(second);
                List<WalLog.Copy> read = log.read(TimelineHistory.of(1), start);
                assertEquals(2, read.size(), () -> log.end.toString());
                assertEquals(List.of(first, second), read.stream().map(WalLog.Copy::end).toList());
                assertEquals(start, read.get(1).prev());
            }
        }
    }

    /** What a thread inserted, as the reader should see it. */
    static List<WalLog.Copy> insertFrom(
            WalInserter inserter, int threads, int count, int maxData, long seed) {
        List<WalLog.Copy> all = new ArrayList<>();
        InsertThreads.run(threads, thread -> insertSome(inserter, count, maxData, seed + thread))
                .forEach(all::addAll);
        inserter.flush(inserter.insertLsn());
        all.sort(Comparator.comparingLong(WalLog.Copy::lsn));
        return all;
    }

    private static List<WalLog.Copy> insertSome(
            WalInserter inserter, int count, int maxData, long seed) {
        RandomRecords records = new RandomRecords(seed);
        List<WalLog.Copy> copies = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            long end = inserter.insert(records.next(maxData));
            WalLog.Copy c = records.expected;
            copies.add(
                    new WalLog.Copy(
                            records.builder.startLsn(),
                            end,
                            0,
                            c.xid(),
                            c.rmid(),
                            c.info(),
                            c.data(),
                            c.blocks()));
            if (records.nextInt(9) == 0) {
                inserter.flush(end);
                assertTrue(inserter.flushedLsn() >= end);
            }
        }
        return copies;
    }

    /** Every record is there, in order, and points back to the one before. */
    static void assertReadBack(WalLog log, List<WalLog.Copy> inserted, long seed) {
        List<WalLog.Copy> read = log.read();
        assertEquals(inserted.size(), read.size(), () -> log.end + " seed=" + seed);
        long prev = 0;
        for (int i = 0; i < read.size(); i++) {
            WalLog.Copy c = inserted.get(i);
            assertEquals(
                    new WalLog.Copy(
                            c.lsn(),
                            c.end(),
                            prev,
                            c.xid(),
                            c.rmid(),
                            c.info(),
                            c.data(),
                            c.blocks()),
                    read.get(i),
                    "seed=" + seed);
            prev = c.lsn();
        }
    }

    private static void assertSameFiles(WalLog model, WalLog log) throws IOException {
        for (long lsn = model.segmentSize; Files.exists(model.file(1, lsn)); ) {
            assertArrayEquals(
                    Files.readAllBytes(model.file(1, lsn)),
                    Files.readAllBytes(log.file(1, lsn)),
                    "segment at " + lsn);
            lsn += model.segmentSize;
        }
    }
}
