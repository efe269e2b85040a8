package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

class WalRoundTripProperties {
    /** WAL-1, WAL-6. */
    @Property(tries = 60)
    void whateverIsWrittenIsReadBack(
            @ForAll long seed, @ForAll @IntRange(min = 1, max = 60) int count) {
        try (WalLog log = new WalLog(1 << 16)) {
            RandomRecords records = new RandomRecords(seed);
            List<WalLog.Copy> expected = new ArrayList<>();
            try (WalWriter writer = log.writer()) {
                for (int i = 0; i < count; i++) {
                    expected.add(append(writer, records, 100_000));
                    if (records.nextInt(4) == 0) {
                        writer.flush();
                    }
                }
                writer.flush();
                assertEquals(expected, log.read());
                assertEquals(writer.lastRecord(), log.lastRecord);
                assertEquals(expected.get(count - 1).end(), log.endOfLastRecord);
                assertEquals(0, log.abortedRecord);
            }
        }
    }

    /** WAL-7. */
    @Property(tries = 40)
    void aSecondWriterContinuesWhereTheReaderEnded(
            @ForAll long seed, @ForAll @IntRange(min = 1, max = 30) int sessions) {
        try (WalLog log = new WalLog(1 << 16)) {
            RandomRecords records = new RandomRecords(seed);
            List<WalLog.Copy> expected = new ArrayList<>();
            log.endOfLastRecord = log.start;
            for (int session = 0; session < sessions; session++) {
                try (WalWriter writer = log.writer(1, log.endOfLastRecord, log.lastRecord, 0)) {
                    for (int i = records.nextInt(4); i >= 0; i--) {
                        expected.add(append(writer, records, 9_000));
                    }
                    writer.flush();
                }
                assertEquals(expected, log.read());
            }
        }
    }

    /** WAL-5. */
    @Property(tries = 30)
    void readingStopsBeforeTheFirstRecordAtThePosition(
            @ForAll long seed, @ForAll @IntRange(min = 0, max = 200_000) int distance) {
        try (WalLog log = new WalLog(1 << 16)) {
            RandomRecords records = new RandomRecords(seed);
            List<WalLog.Copy> expected = new ArrayList<>();
            try (WalWriter writer = log.writer()) {
                for (int i = 0; i < 20; i++) {
                    expected.add(append(writer, records, 20_000));
                }
                writer.flush();
            }
            long stop = log.start + distance;
            expected.removeIf(copy -> copy.lsn() >= stop);
            try (WalReader reader = log.reader()) {
                reader.stopAt(stop);
                reader.begin(log.start);
                assertEquals(expected, log.drain(reader));
                EndOfWal.Reason reason = log.end.reason();
                assertTrue(
                        reason == EndOfWal.Reason.STOP_POSITION || expected.size() == 20,
                        reason::toString);
            }
        }
    }

    private static WalLog.Copy append(WalWriter writer, RandomRecords records, int maxData) {
        long lsn = writer.nextRecordLsn();
        long prev = writer.lastRecord();
        long end = writer.append(records.next(maxData));
        assertEquals(lsn, writer.lastRecord());
        WalLog.Copy copy = records.expected;
        return new WalLog.Copy(
                lsn, end, prev, copy.xid(), copy.rmid(), copy.info(), copy.data(), copy.blocks());
    }
}
