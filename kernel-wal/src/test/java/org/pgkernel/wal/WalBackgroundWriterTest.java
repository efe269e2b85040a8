package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.testkit.FaultyDisk;
import org.pgkernel.testkit.FaultyDisk.Call;

class WalBackgroundWriterTest {
    private static final long DELAY = 200;
    private static final long FLUSH_AFTER = 1 << 15;

    private final WalLog log = new WalLog(1 << 20);
    private final FaultyDisk disk = new FaultyDisk(new PosixDisk());
    private long now;

    WalBackgroundWriterTest() {
        log.disk = disk;
    }

    @AfterEach
    void removeLog() {
        log.close();
    }

    private WalBackgroundWriter writerOf(WalInserter inserter) {
        return new WalBackgroundWriter(inserter, DELAY, FLUSH_AFTER, () -> now);
    }

    @Test
    void anAsynchronousCommitIsDurableAfterOneDelayAndOneSync() {
        try (WalInserter inserter = log.inserter(1 << 17)) {
            WalBackgroundWriter writer = writerOf(inserter);
            long end = inserter.insert(WalLog.plain(9_000));
            inserter.flushLater(end);
            now = DELAY - 1;
            assertEquals(0, writer.doWork());
            assertEquals(log.start, inserter.writtenLsn());
            now = DELAY;
            assertTrue(writer.doWork() > 0);
            assertEquals(end, inserter.flushedLsn());
            assertEquals(1, inserter.syncs());
            now = 2 * DELAY;
            assertEquals(0, writer.doWork(), "nothing is left to do");
            assertEquals(1, inserter.syncs());
        }
    }

    /** Nobody commits: a round makes whole pages durable and leaves the one in the making. */
    @Test
    void wholePagesAreDurableAfterOneDelay() {
        try (WalInserter inserter = log.inserter(1 << 17)) {
            WalBackgroundWriter writer = writerOf(inserter);
            inserter.insert(WalLog.plain(20_000));
            now = DELAY;
            assertTrue(writer.doWork() > 0);
            long pages = log.segmentSize + 2 * WalLog.PAGE;
            assertEquals(pages, inserter.writtenLsn());
            assertEquals(pages, inserter.flushedLsn());
        }
    }

    @Test
    void muchLogIsWrittenAndSyncedBeforeTheDelayIsOver() {
        try (WalInserter inserter = log.inserter(1 << 17)) {
            WalBackgroundWriter writer = writerOf(inserter);
            inserter.insert(WalLog.plain((int) FLUSH_AFTER - 1_000));
            assertEquals(0, writer.doWork());
            inserter.insert(WalLog.plain(10_000));
            assertTrue(writer.doWork() > 0);
            assertTrue(inserter.flushedLsn() - log.start >= FLUSH_AFTER);
            assertEquals(inserter.insertLsn() & -WalLog.PAGE, inserter.flushedLsn());
        }
    }

    /** The delay is an hour: only the inserter can wake it. */
    @Test
    @Timeout(60)
    void aRestingWriterIsWokenByWhatInsertersFill() throws InterruptedException {
        try (WalInserter inserter = log.inserter(1 << 21)) {
            WalBackgroundWriter writer =
                    new WalBackgroundWriter(
                            inserter, 3_600_000_000_000L, 1 << 19, System::nanoTime);
            Thread thread =
                    new Thread(
                            () -> {
                                while (inserter.flushedLsn() == log.start) {
                                    if (writer.doWork() == 0) {
                                        writer.rest();
                                    }
                                }
                            });
            thread.start();
            WalRecordBuilder record = WalLog.plain(5_000);
            while (inserter.insertLsn() < log.start + (1 << 20)) {
                inserter.insert(record);
            }
            thread.join();
            assertTrue(inserter.flushedLsn() >= log.start + (1 << 18));
        }
    }

    @Test
    void theNextSegmentIsThereBeforeItIsNeeded() {
        try (WalInserter inserter = log.inserter(1 << 20)) {
            WalBackgroundWriter writer = writerOf(inserter);
            inserter.insert(WalLog.plain(800_000));
            assertTrue(writer.doWork() > 0);
            assertTrue(Files.exists(log.file(1, 2L * log.segmentSize)));
        }
    }

    @Test
    @DisplayName("C08: a failed sync in the background stops every committer")
    void failedSyncStopsEverybody() {
        try (WalInserter inserter = log.inserter(1 << 17)) {
            WalBackgroundWriter writer = writerOf(inserter);
            long end = inserter.insert(WalLog.plain(100));
            inserter.flushLater(end);
            disk.fail(Call.SYNC, "", DiskException.EIO);
            now = DELAY;
            assertThrows(KernelStoppedException.class, writer::doWork);
            disk.clear(Call.SYNC);
            int syncs = disk.count(Call.SYNC);
            assertThrows(KernelStoppedException.class, () -> inserter.flush(end));
            now = 2 * DELAY;
            assertThrows(KernelStoppedException.class, writer::doWork);
            assertThrows(KernelStoppedException.class, () -> inserter.insert(WalLog.plain(1)));
            assertEquals(syncs, disk.count(Call.SYNC));
        }
    }

    /** C09: the segment is not needed yet, so a full disk is told and nothing stops. */
    @Test
    @DisplayName(
            "C09: no room for the next segment is told by name, commits go on, a later round makes it")
    void fullDiskWhileTheNextSegmentIsMade() throws IOException {
        try (WalInserter inserter = log.inserter(1 << 20)) {
            WalBackgroundWriter writer = writerOf(inserter);
            inserter.insert(WalLog.plain(800_000));
            inserter.flush(inserter.insertLsn());
            long end = inserter.insert(WalLog.plain(40_000));
            inserter.flushLater(end);
            disk.room(500_000);
            now = DELAY;
            DiskException full = assertThrows(DiskException.class, writer::doWork);
            assertTrue(full.mayRetry());
            String next = log.file(1, 2L * log.segmentSize).toString();
            assertEquals(
                    "the WAL segment from 0/200000 on could not be made before it is needed: no"
                            + " space left on device file="
                            + next,
                    full.getMessage());
            assertEquals(end, inserter.flushedLsn(), "the asynchronous commit is durable");
            try (var files = Files.list(log.directory)) {
                assertEquals(1, files.count(), "nothing half made is left");
            }
            disk.room(Long.MAX_VALUE);
            inserter.flush(inserter.insert(WalLog.plain(10)));
            now = 2 * DELAY;
            assertTrue(writer.doWork() > 0);
            assertEquals(log.segmentSize, Files.size(Path.of(next)));
        }
    }
}
