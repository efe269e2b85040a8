package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.testkit.FaultyDisk;
import org.pgkernel.testkit.FaultyDisk.Call;

class WalInserterTest {
    private static final int RING = 1 << 16;

    private final WalLog log = new WalLog(1 << 16);
    private final FaultyDisk disk = new FaultyDisk(new PosixDisk());

    @AfterEach
    void removeLog() {
        log.close();
    }

    /** WAL-13. */
    @Test
    void aRecordOfNineMebibytesAndItsNeighboursHaveTheRightBackLinks() {
        try (WalLog large = new WalLog(1 << 24);
                WalInserter inserter = large.inserter(1 << 20)) {
            List<Integer> counts =
                    InsertThreads.run(
                            4,
                            thread -> {
                                WalRecordBuilder small = WalLog.plain(90 + thread);
                                for (int i = 0; i < 500; i++) {
                                    inserter.insert(small);
                                    if (thread == 0 && (i == 100 || i == 101)) {
                                        inserter.insert(WalLog.plain(9 << 20));
                                    }
                                }
                                return 500;
                            });
            inserter.insert(WalLog.plain((8 << 20) - 40));
            inserter.insert(WalLog.plain(1));
            inserter.flush(inserter.insertLsn());
            List<WalLog.Copy> read = large.read();
            assertEquals(2004, read.size(), () -> counts + " " + large.end);
            assertBackLinks(read, 0);
            assertEquals(2, read.stream().filter(c -> c.data().limit() == 9 << 20).count());
            assertEquals(read.getLast().lsn(), inserter.lastRecord());
        }
    }

    /** WAL-13: the gap behind the switch is more than the reservation's length field can say. */
    @Test
    void aSwitchEarlyInASegmentKeepsTheBackLinks() {
        try (WalLog large = new WalLog(1 << 24);
                WalInserter inserter = large.inserter(1 << 18)) {
            WalRecordBuilder builder = new WalRecordBuilder();
            inserter.insert(WalLog.plain(100));
            long end = inserter.switchSegment(builder);
            assertEquals(end, builder.startLsn() + 24);
            assertEquals(3L << 24, inserter.insertLsn() + (1 << 24));
            assertEquals(2L << 24, inserter.flushedLsn());
            assertEquals(2L << 24, inserter.switchSegment(builder), "nothing at a segment's start");
            inserter.insert(WalLog.plain(200));
            inserter.flush(inserter.insert(WalLog.plain(300)));
            List<WalLog.Copy> read = large.read();
            assertEquals(4, read.size(), () -> large.end.toString());
            assertBackLinks(read, 0);
            assertEquals((2L << 24) + 40, read.get(2).lsn());
        }
    }

    /** WAL-13, WAL-14. */
    @Test
    void threadsAndSwitchesAtTheSameTimeLoseNothing() {
        try (WalInserter inserter = log.inserter(1 << 14)) {
            int switches =
                    InsertThreads.run(
                                    4,
                                    thread -> {
                                        WalRecordBuilder own = new WalRecordBuilder();
                                        int done = 0;
                                        for (int i = 0; i < 200; i++) {
                                            inserter.insert(WalLog.plain(i * 7 + thread));
                                            if (i % 40 == thread) {
                                                inserter.switchSegment(own);
                                                done += own.startLsn() == 0 ? 0 : 1;
                                            }
                                        }
                                        return done;
                                    })
                            .stream()
                            .mapToInt(Integer::intValue)
                            .sum();
            inserter.flush(inserter.insertLsn());
            List<WalLog.Copy> read = log.read();
            assertEquals(800 + switches, read.size(), () -> log.end.toString());
            assertBackLinks(read, 0);
        }
    }

    @Test
    @DisplayName("R08, C24: a second inserter goes on in the page, keeps it and zeroes its rest")
    void tailOfThePageIsKept() {
        long end;
        try (WalInserter inserter = log.inserter(RING)) {
            inserter.insert(WalLog.plain(1000));
            end = inserter.insert(WalLog.plain(500));
            inserter.insert(WalLog.plain(5000));
            inserter.flush(inserter.insertLsn());
        }
        byte[] before = log.bytes(log.segmentSize, (int) (end - log.segmentSize));
        long last = log.read().get(1).lsn();
        try (WalInserter inserter = log.inserter(end, last, RING, new WalInserter.Parts())) {
            inserter.flush(inserter.insert(WalLog.plain(40)));
            List<WalLog.Copy> read = log.read();
            assertEquals(3, read.size());
            assertBackLinks(read, 0);
            assertEquals(end, read.get(2).lsn());
            byte[] after = log.bytes(log.segmentSize, WalLog.PAGE);
            for (int i = 0; i < before.length; i++) {
                assertEquals(before[i], after[i]);
            }
            for (int i = (int) (log.endOfLastRecord - log.segmentSize); i < WalLog.PAGE; i++) {
                assertEquals(0, after[i], "byte " + i);
            }
        }
    }

    @Test
    @DisplayName("R08: a first record in the middle of a segment's first page, or a later page")
    void longHeaderWhereverTheFirstRecordGoes() {
        for (long from :
                new long[] {3L * log.segmentSize + 800, 5L * log.segmentSize + 24_576 + 80}) {
            try (WalInserter inserter =
                    log.inserter(from, log.start, RING, new WalInserter.Parts())) {
                inserter.flush(inserter.insert(WalLog.plain(20_000)));
                assertEquals(1, log.read(TimelineHistory.of(1), from).size());
                UnsafeBuffer header =
                        new UnsafeBuffer(
                                log.bytes(from & -log.segmentSize, WalPageHeader.LONG_SIZE));
                assertEquals(WalLog.SYSTEM, WalPageHeader.systemIdentifier(header, 0));
            }
        }
    }

    /** WAL-9. */
    @Test
    void behindALogThatEndsWithItsPageStandZeros() {
        for (int pages : new int[] {1, 8}) {
            long border = log.segmentSize + (long) pages * WalLog.PAGE;
            int length = (int) (border - log.start) - (pages - 1) * WalPageHeader.SHORT_SIZE;
            try (WalInserter inserter = log.inserter(RING)) {
                assertEquals(border, inserter.insert(WalLog.ofTotalLength(length)));
                inserter.flush(inserter.insert(WalLog.plain(77)));
            }
            try (WalInserter inserter = log.inserter(RING)) {
                inserter.flush(inserter.insert(WalLog.ofTotalLength(length)));
                assertEquals(1, log.read().size());
                assertEquals(border, log.endOfLastRecord);
            }
        }
    }

    /** WAL-15: the redo point moved between the caller's look and the insertion. */
    @Test
    void recordWithoutAnImageThatTheNewRedoPointDemandsIsRefused() {
        try (WalInserter inserter = log.inserter(RING)) {
            WalRecordBuilder record = WalLog.plain(10).withoutImage(log.start + 8);
            long end = inserter.insert(record);
            assertEquals(end, record.startLsn() + 40);
            long redo = inserter.moveRedo();
            assertEquals(end, redo);
            assertEquals(redo, inserter.redoLsn());
            assertEquals(WalInserter.NEEDS_IMAGES, inserter.insert(record));
            assertEquals(0, record.startLsn());
            assertEquals(end, inserter.insertLsn());
            assertEquals(
                    WalInserter.NEEDS_IMAGES,
                    inserter.insert(WalLog.plain(9 << 20).withoutImage(redo)));
            assertTrue(inserter.insert(WalLog.plain(10).withoutImage(redo + 1)) > end);
        }
    }

    /** The redo point never stands in a page header. */
    @Test
    void redoPointAtAPageBorderIsBehindTheHeader() {
        try (WalInserter inserter = log.inserter(RING)) {
            inserter.insert(WalLog.ofTotalLength(WalLog.PAGE - WalPageHeader.LONG_SIZE));
            assertEquals(log.segmentSize + WalLog.PAGE, inserter.insertLsn());
            assertEquals(log.segmentSize + WalLog.PAGE + 24, inserter.moveRedo());
        }
    }

    /** WAL-16. */
    @Test
    void eightCommitsShareTwoSyncs() {
        log.disk = disk;
        CountDownLatch leads = new CountDownLatch(1);
        CountDownLatch others = new CountDownLatch(7);
        try (WalInserter inserter = log.inserter(RING)) {
            inserter.flush(inserter.insert(WalLog.plain(1)));
            long before = inserter.syncs();
            AtomicBoolean first = new AtomicBoolean(true);
            disk.before(
                    Call.SYNC,
                    (path, offset) -> {
                        if (first.getAndSet(false)) {
                            leads.countDown();
                            await(others);
                        }
                    });
            InsertThreads.run(
                    8,
                    thread -> {
                        if (thread > 0) {
                            await(leads);
                        }
                        long end = inserter.insert(WalLog.plain(100));
                        if (thread > 0) {
                            others.countDown();
                        }
                        inserter.flush(end);
                        assertTrue(inserter.flushedLsn() >= end);
                        return end;
                    });
            assertEquals(2, inserter.syncs() - before);
        }
    }

    @Test
    void asynchronousCommitIsDurableAfterTheWalWritersNextStep() {
        log.disk = disk;
        try (WalInserter inserter = log.inserter(RING)) {
            long end = inserter.insert(WalLog.plain(100));
            int syncs = disk.count(Call.SYNC);
            inserter.flushLater(end);
            inserter.flushLater(end - 8);
            assertEquals(syncs, disk.count(Call.SYNC));
            assertEquals(log.start, inserter.flushedLsn());
            assertTrue(inserter.doWork() > 0);
            assertEquals(end, inserter.flushedLsn());
            assertEquals(0, inserter.doWork());
        }
    }

    @Test
    void walWriterWritesWholePagesAndMakesTheNextSegment() {
        log.disk = disk;
        try (WalInserter inserter = log.inserter(RING)) {
            inserter.insert(WalLog.plain(20_000));
            assertEquals(1, inserter.doWork());
            assertEquals(log.segmentSize + 2 * WalLog.PAGE, inserter.writtenLsn());
            assertEquals(log.start, inserter.flushedLsn());
            inserter.insert(WalLog.plain(31_000));
            assertFalse(Files.exists(log.file(1, 2L * log.segmentSize)));
            assertEquals(2, inserter.doWork());
            assertTrue(Files.exists(log.file(1, 2L * log.segmentSize)));
            assertEquals(0, inserter.doWork());
        }
    }

    @Test
    @DisplayName("C08, WAL-12: a failed sync stops everybody, and nothing is tried again")
    void failedSyncStopsEverybody() {
        log.disk = disk;
        try (WalInserter inserter = log.inserter(RING)) {
            inserter.flush(inserter.insert(WalLog.plain(1)));
            long flushed = inserter.flushedLsn();
            disk.fail(Call.SYNC, "", DiskException.EIO);
            InsertThreads.run(
                    4,
                    thread ->
                            assertThrows(
                                    KernelStoppedException.class,
                                    () -> inserter.flush(inserter.insert(WalLog.plain(100)))));
            disk.clear(Call.SYNC);
            int syncs = disk.count(Call.SYNC);
            int writes = disk.count(Call.WRITE);
            assertThrows(KernelStoppedException.class, () -> inserter.insert(WalLog.plain(1)));
            assertThrows(KernelStoppedException.class, () -> inserter.flush(flushed + 8));
            assertThrows(KernelStoppedException.class, inserter::doWork);
            assertEquals(syncs, disk.count(Call.SYNC));
            assertEquals(writes, disk.count(Call.WRITE));
            assertEquals(flushed, inserter.flushedLsn());
        }
    }

    /** WAL-12. */
    @Test
    void failedWriteStopsInsertersThatWaitForTheRing() {
        log.disk = disk;
        try (WalInserter inserter = log.inserter(1 << 14)) {
            inserter.flush(inserter.insert(WalLog.plain(1)));
            disk.fail(Call.WRITE, "", DiskException.EIO);
            InsertThreads.run(
                    4,
                    thread ->
                            assertThrows(
                                    KernelStoppedException.class,
                                    () -> {
                                        for (int i = 0; i < 100; i++) {
                                            inserter.insert(WalLog.plain(3000));
                                        }
                                    }));
            disk.clear(Call.WRITE);
            assertThrows(KernelStoppedException.class, inserter::doWork);
            assertEquals(1, log.read().size());
        }
    }

    @Test
    @DisplayName("C09, WAL-12: no room for a segment that is needed now stops everybody, by name")
    void fullDiskWhereTheNextSegmentBegins() throws IOException {
        log.disk = disk;
        try (WalInserter inserter = log.inserter(RING)) {
            inserter.flush(inserter.insert(WalLog.plain(60_000)));
            List<WalLog.Copy> before = log.read();
            long end = inserter.insert(WalLog.plain(9_000));
            disk.room(log.segmentSize);
            String message =
                    assertThrows(KernelStoppedException.class, () -> inserter.flush(end))
                            .getMessage();
            assertTrue(message.contains("no space left on device"), message);
            assertTrue(message.contains("file=") && message.contains("lsn="), message);
            disk.room(Long.MAX_VALUE);
            assertThrows(KernelStoppedException.class, () -> inserter.insert(WalLog.plain(1)));
            assertEquals(before, log.read());
            assertEquals(before.getLast().end(), log.abortedRecord);
            try (var files = Files.list(log.directory)) {
                assertEquals(1, files.count(), "nothing half made is left");
            }
        }
    }

    @Test
    void flushBeyondTheLogIsRefused() {
        try (WalInserter inserter = log.inserter(RING)) {
            long end = inserter.insert(WalLog.plain(1));
            assertTrue(
                    assertThrows(DamagedDataException.class, () -> inserter.flush(end + 8))
                            .getMessage()
                            .contains("lsn="));
            inserter.flush(end);
        }
        assertThrows(RefusedException.class, () -> log.inserter(12_345));
        assertThrows(RefusedException.class, () -> log.inserter(WalLog.PAGE));
    }

    /** The reservation's first word has an end; nothing wraps. */
    @Test
    void whenTheReservationIsUsedUpTheKernelMustBeOpenedAnew() {
        WalBytePositions positions = new WalBytePositions(1 << 24);
        long base = positions.of((1L << 24) + 40);
        long last = base + (1L << 47) - 128;
        InsertReservation reservation = new InsertReservation(positions, base, last, 77);
        assertEquals(last, reservation.position(reservation.reserve(112)));
        assertThrows(KernelStoppedException.class, () -> reservation.reserve(16));
        assertThrows(KernelStoppedException.class, () -> reservation.reserveTo(last + 4096));
        assertEquals(last + 112, reservation.position());
        assertEquals(positions.startLsn(last), reservation.lastRecord());
    }

    /** WAL-8. */
    @Test
    void insertingAllocatesNothing() {
        try (WalInserter inserter = log.inserter(1 << 20)) {
            WalRecordBuilder record = WalLog.plain(74);
            ThreadMXBean bean = (ThreadMXBean) ManagementFactory.getThreadMXBean();
            long least = Long.MAX_VALUE;
            for (int round = 0; round < 10 && least > 1000; round++) {
                long before = bean.getCurrentThreadAllocatedBytes();
                for (int i = 0; i < 5000; i++) {
                    inserter.insert(record);
                }
                least = Math.min(least, bean.getCurrentThreadAllocatedBytes() - before);
                inserter.flush(inserter.insertLsn());
            }
            assertTrue(least <= 1000, least + " bytes for 5000 insertions");
        }
    }

    static void assertBackLinks(List<WalLog.Copy> records, long first) {
        long prev = first;
        for (WalLog.Copy copy : records) {
            assertEquals(prev, copy.prev());
            prev = copy.lsn();
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
