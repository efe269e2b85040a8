package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.testkit.FaultyDisk;
import org.pgkernel.testkit.FaultyDisk.Call;
import org.pgkernel.wal.EndOfWal.Reason;

class WalReaderTest {
    private final WalLog log = new WalLog(1 << 16);
    private final FaultyDisk disk = new FaultyDisk(new PosixDisk());

    @AfterEach
    void removeLog() {
        log.close();
    }

    /** WAL-4. */
    @Test
    @DisplayName("R17: after a failed read nothing cached is used until a good read")
    void failedReadForgetsThePages() {
        log.disk = disk;
        long end;
        long last;
        try (WalWriter writer = log.writer()) {
            end = writer.append(WalLog.plain(100));
            last = writer.lastRecord();
            writer.append(WalLog.plain(70_000));
            writer.flush();
        }
        try (WalReader reader = log.reader()) {
            reader.begin(log.start);
            assertNotNull(reader.next());
            disk.fail(
                    Call.READ,
                    log.file(1, 2L * log.segmentSize).getFileName().toString(),
                    DiskException.EIO);
            assertThrows(DiskException.class, reader::next);
            disk.clear(Call.READ);
            // Meanwhile the first segment changes, as when it comes from another source.
            try (WalWriter writer = log.writer(1, end, last, 0)) {
                writer.append(WalLog.plain(200));
                writer.flush();
            }
            assertEquals(200, reader.next().dataLength());
        }
    }

    @Test
    @DisplayName("R17: after a short read the segment is read again")
    void shortReadIsRepeated() {
        log.disk = disk;
        try (WalWriter writer = log.writer()) {
            for (int i = 0; i < 12; i++) {
                writer.append(WalLog.plain(2000));
            }
            writer.flush();
        }
        int count = log.read().size();
        try (WalReader reader = log.reader()) {
            reader.begin(log.start);
            int read = 0;
            for (int bytes = 0; bytes <= log.segmentSize; bytes += 1000) {
                disk.readableBytes(bytes);
                while (reader.next() != null) {
                    read++;
                }
                Reason reason = reader.end().reason();
                assertEquals(
                        read < count ? Reason.SHORT_SEGMENT : Reason.ZERO_LENGTH,
                        reason,
                        "after " + bytes);
                if (read == count) {
                    break;
                }
            }
            assertEquals(count, read);
        }
    }

    @Test
    void waitingReaderSeesWhatIsAppendedToTheSamePage() {
        try (WalWriter writer = log.writer();
                WalReader reader = log.reader()) {
            reader.begin(log.start);
            for (int i = 0; i < 300; i++) {
                assertNull(reader.next());
                writer.append(WalLog.plain(i));
                writer.flush();
                assertEquals(i, reader.next().dataLength());
            }
        }
    }

    @Test
    void switchRecordContinuesAtTheNextSegment() {
        try (WalWriter writer = log.writer()) {
            writer.append(WalLog.plain(100));
            assertEquals(
                    2L * log.segmentSize,
                    writer.append(new WalRecordBuilder().begin(0, WalRecordFormat.XLOG_SWITCH, 0)));
            assertEquals(2L * log.segmentSize + WalPageHeader.LONG_SIZE, writer.nextRecordLsn());
            writer.append(WalLog.plain(200));
            writer.flush();
        }
        List<WalLog.Copy> copies = log.read();
        assertEquals(3, copies.size());
        assertEquals(2L * log.segmentSize, copies.get(1).end());
        assertEquals(2L * log.segmentSize + WalPageHeader.LONG_SIZE, copies.get(2).lsn());
    }

    @Test
    void recordOfMoreThanAWindowIsAssembled() {
        try (WalLog large = new WalLog(1 << 20)) {
            try (WalWriter writer = large.writer()) {
                writer.append(WalLog.plain(5_000_000));
                writer.append(WalLog.plain(5));
                writer.flush();
            }
            try (WalReader reader = large.reader()) {
                reader.begin(large.start);
                assertEquals(5_000_000, reader.next().dataLength());
                assertEquals(5, reader.next().dataLength());
                assertNull(reader.next());
                assertTrue(
                        reader.assemblyCapacity() < 1_000_000,
                        "the long record's memory is given back");
            }
        }
    }

    @Test
    void oneViewForEachBlockAndData() {
        UnsafeBuffer bytes = new UnsafeBuffer(new byte[] {1, 2, 3, 4});
        try (WalWriter writer = log.writer()) {
            writer.append(
                    new WalRecordBuilder()
                            .begin(10, 0, 5)
                            .data(bytes, 0, 1)
                            .block(2, 1663, 5, 100, ForkNumber.MAIN, -1, 0)
                            .blockData(2, bytes, 1, 1)
                            .block(
                                    0,
                                    1663,
                                    5,
                                    100,
                                    ForkNumber.FSM,
                                    7,
                                    WalRecordFormat.BKPBLOCK_WILL_INIT)
                            .blockData(0, bytes, 2, 2));
            writer.flush();
        }
        try (WalReader reader = log.reader()) {
            reader.begin(log.start);
            WalRecord record = reader.next();
            var zero = record.blockData(0);
            var two = record.blockData(2);
            assertEquals(1, record.data().getByte(0));
            assertEquals(3, zero.getByte(0));
            assertEquals(2, zero.capacity());
            assertEquals(2, two.getByte(0));
            assertEquals(2, record.maxBlockId());
            assertFalse(record.hasBlock(1));
            assertTrue(record.willInit(0));
            assertEquals(ForkNumber.FSM, record.blockFork(0));
            assertEquals(-1, record.blockNumber(2));
            assertEquals(100, record.blockRel(2));
            assertTrue(
                    assertThrows(DamagedDataException.class, () -> record.blockRel(1))
                            .getMessage()
                            .endsWith("lsn=0/10028"));
            assertThrows(
                    DamagedDataException.class,
                    () -> record.restoreImage(0, new UnsafeBuffer(new byte[8192])));
        }
    }

    @Test
    void missingDirectoryIsAMissingSegment() {
        try (WalReader reader =
                new WalReader(
                        disk, log.directory + "/nowhere", TimelineHistory.of(1), 1 << 20, 0)) {
            reader.begin(5L << 20);
            assertNull(reader.next());
            assertEquals(Reason.MISSING_SEGMENT, reader.end().reason());
            assertTrue(
                    reader.end().detail().contains("000000010000000000000005"),
                    reader.end().detail());
        }
        assertThrows(
                RefusedException.class,
                () -> new WalReader(disk, "x", TimelineHistory.of(1), 100_000, 0));
    }

    @Test
    void lastPositionsOfAllAreReadWithoutOverflow() throws IOException {
        try (WalReader reader = log.reader()) {
            for (long lsn :
                    new long[] {-1, -8, -WalLog.PAGE, -log.segmentSize + 40L, Long.MIN_VALUE}) {
                reader.begin(lsn);
                assertNull(reader.next());
            }
            // The very last segment, with a record that would cross the end of all positions.
            UnsafeBuffer bytes = new UnsafeBuffer(new byte[log.segmentSize]);
            for (int at = 0; at < log.segmentSize; at += WalLog.PAGE) {
                WalPageHeader.init(
                        bytes, at, at - log.segmentSize, 1, log.segmentSize, WalLog.SYSTEM);
            }
            bytes.putInt(log.segmentSize - 64, 5000);
            bytes.putByte(log.segmentSize - 64 + 17, (byte) 10);
            Files.write(log.file(1, -log.segmentSize), bytes.byteArray());
            reader.begin(-64);
            assertNull(reader.next());
            assertEquals(Reason.MISSING_SEGMENT, reader.end().reason());
        }
    }

    /** WAL-8. */
    @Test
    void readingAllocatesNothing() {
        try (WalLog large = new WalLog(1 << 20)) {
            RandomRecords records = new RandomRecords(42);
            try (WalWriter writer = large.writer()) {
                while (writer.nextRecordLsn() < 3 << 20) {
                    writer.append(records.next(1000));
                }
                writer.flush();
            }
            ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
            UnsafeBuffer page = new UnsafeBuffer(new byte[8192]);
            try (WalReader reader = large.reader()) {
                long least = Long.MAX_VALUE;
                for (int round = 0; round < 5; round++) {
                    reader.begin(large.start);
                    assertNotNull(reader.next());
                    long before = threads.getCurrentThreadAllocatedBytes();
                    long sum = 0;
                    // Within the first segment, so that no file is opened in between.
                    for (WalRecord record = reader.next();
                            record.endLsn() < 0x1F0000;
                            record = reader.next()) {
                        sum += record.data().capacity() + record.xid();
                        for (int id = 0; id <= record.maxBlockId(); id++) {
                            if (record.hasBlock(id)) {
                                sum +=
                                        record.blockData(id).capacity()
                                                + record.blockFork(id).ordinal();
                                if (record.hasImage(id)) {
                                    record.restoreImage(id, page);
                                }
                            }
                        }
                    }
                    long allocated = threads.getCurrentThreadAllocatedBytes() - before;
                    assertTrue(sum != 0);
                    least = Math.min(least, allocated);
                }
                assertTrue(least < 100, least + " bytes allocated");
            }
        }
    }
}
