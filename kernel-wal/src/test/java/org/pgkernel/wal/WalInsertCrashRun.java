package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.testkit.CrashSearch;
import org.pgkernel.testkit.SimulatedDisk;

/**
 * Inserts, flushes, switches and removes segments until the crash; then reads: what was flushed is
 * there, what else is there was inserted, in the same order. Then it goes on from there as a
 * restarted primary does, and reads both old and new.
 */
final class WalInsertCrashRun implements CrashSearch.Run {
    private static final String DIRECTORY = "/wal";
    private static final int SEGMENT = 1 << 14;
    private static final long START = SEGMENT + WalPageHeader.LONG_SIZE;
    static final SimulatedDisk TEMPLATE = new SimulatedDisk(0).directories(DIRECTORY);

    private final long seed;
    private final int steps;
    private final WalInserter.Parts parts;
    private final List<Long> starts = new ArrayList<>();
    private final List<Long> ends = new ArrayList<>();
    private long acknowledged;

    /** Start of the first record that removal left. */
    private long from = START;

    WalInsertCrashRun(long seed, int steps, WalInserter.Parts parts) {
        this.seed = seed;
        this.steps = steps;
        this.parts = parts;
    }

    static CrashSearch search(String name, long seed, int steps, WalInserter.Parts parts) {
        return CrashSearch.of(name, TEMPLATE, () -> new WalInsertCrashRun(seed, steps, parts))
                .seed(seed);
    }

    @Override
    public void workload(SimulatedDisk disk) {
        RandomRecords records = new RandomRecords(seed);
        try (WalInserter inserter = inserter(disk, START, 0, 0)) {
            for (int i = 0; i < steps; i++) {
                int kind = records.nextInt(20);
                WalRecordBuilder builder = records.next(records.nextInt(3) == 0 ? 12_000 : 1_000);
                if (kind == 0 && inserter.insertLsn() % SEGMENT != 0) {
                    builder.begin(0, WalRecordFormat.XLOG_SWITCH, 0);
                }
                long end = insert(inserter, builder);
                if (kind < 7) {
                    inserter.flush(end);
                    acknowledged = end;
                } else if (kind == 7) {
                    inserter.doWork();
                } else if (kind == 8 && acknowledged != 0) {
                    long keep = starts.get(ends.indexOf(acknowledged));
                    from = keep;
                    inserter.segments().removeBefore(keep, inserter.insertLsn(), 2);
                }
            }
        }
    }

    /** Remembers the record before its bytes can reach the disk. */
    private long insert(WalInserter inserter, WalRecordBuilder builder) {
        long before = inserter.insertLsn();
        long start =
                before % WalLog.PAGE == 0 ? before + WalPageHeader.sizeAt(before, SEGMENT) : before;
        starts.add(start);
        WalBytePositions positions = new WalBytePositions(SEGMENT);
        long end =
                positions.endLsn(
                        positions.of(start) + WalRecordFormat.align(builder.encodedLength()));
        // A reader goes on behind the segment that a switch ended.
        ends.add(builder.isSwitch() ? end + SEGMENT - 1 & -SEGMENT : end);
        assertEquals(end, inserter.insert(builder));
        return ends.getLast();
    }

    @Override
    public void verify(SimulatedDisk found) {
        if (starts.isEmpty()) {
            return;
        }
        int first = starts.indexOf(from);
        try (WalReader reader = reader(found)) {
            int read = readAll(reader, first, from);
            long end = read == 0 ? from : ends.get(first + read - 1);
            assertTrue(
                    acknowledged <= end || acknowledged < from,
                    () -> "acknowledged " + acknowledged + " read to " + end + ": " + reader.end());
            if (read > 0) {
                goOn(found, reader, first, read);
            }
        }
    }

    private int readAll(WalReader reader, int first, long begin) {
        reader.begin(begin);
        int read = 0;
        WalRecord record;
        while ((record = reader.next()) != null) {
            assertEquals(starts.get(first + read), record.lsn());
            assertEquals(ends.get(first + read), record.endLsn());
            read++;
        }
        return read;
    }

    /** C24, C25 1: a restarted primary's first records. */
    private void goOn(SimulatedDisk disk, WalReader old, int first, int read) {
        long lost = old.abortedRecord();
        long missing = old.missingContinuation();
        long begin = missing != 0 ? missing : old.endOfLastRecord();
        List<Long> more = new ArrayList<>();
        try (WalInserter inserter = inserter(disk, begin, old.lastRecord(), missing)) {
            if (missing != 0) {
                UnsafeBuffer data = new UnsafeBuffer(new byte[16]);
                data.putLong(0, lost);
                inserter.insert(new WalRecordBuilder().begin(0, 0xD0, 0).data(data, 0, 16));
            }
            for (int i = 0; i < 5; i++) {
                WalRecordBuilder builder = WalLog.plain(4_000 * i);
                inserter.insert(builder);
                more.add(builder.startLsn());
            }
            inserter.flush(inserter.insertLsn());
        }
        try (WalReader reader = reader(disk)) {
            reader.begin(from);
            for (int i = 0; i < read; i++) {
                assertEquals(starts.get(first + i), reader.next().lsn());
            }
            if (missing != 0) {
                assertEquals(0xD0, reader.next().info(), () -> "" + reader.end());
            }
            for (long lsn : more) {
                WalRecord record = reader.next();
                assertTrue(record != null, () -> "" + reader.end());
                assertEquals(lsn, record.lsn());
            }
            assertEquals(null, reader.next());
        }
    }

    private WalInserter inserter(Disk disk, long start, long prev, long missing) {
        return new WalInserter(
                disk,
                DIRECTORY,
                1,
                SEGMENT,
                WalLog.SYSTEM,
                start,
                prev,
                missing,
                0,
                1 << 14,
                parts);
    }

    private static WalReader reader(Disk disk) {
        return new WalReader(disk, DIRECTORY, TimelineHistory.of(1), SEGMENT, WalLog.SYSTEM);
    }
}
