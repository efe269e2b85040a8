package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.KernelStoppedException;

class SlruTest {
    private static final int MAX_PAGE = 1000;

    @TempDir Path directory;
    private Slru slru;

    @BeforeEach
    void open() {
        slru = open(4);
    }

    private Slru open(int slots) {
        return new Slru(
                new PosixDisk(), directory.toString(), slots, MAX_PAGE, true, (a, b) -> a < b);
    }

    private static void fill(Slru slru, int page, int value) {
        synchronized (slru) {
            int slot = slru.readPage(page);
            slru.memory().setMemory(Slru.offset(slot), 8192, (byte) value);
            slru.markDirty(slot);
        }
    }

    private static int valueOf(Slru slru, int page) {
        synchronized (slru) {
            int slot = slru.readPage(page);
            int value = slru.memory().getByte(Slru.offset(slot));
            for (int i = 0; i < 8192; i++) {
                assertEquals(value, slru.memory().getByte(Slru.offset(slot) + i));
            }
            return value;
        }
    }

    private static void zero(Slru slru, int page, boolean write) {
        synchronized (slru) {
            int slot = slru.zeroPage(page);
            if (write) {
                slru.writePage(slot);
            }
        }
    }

    private Path file(String name) {
        return directory.resolve(name);
    }

    @Test
    void missingFileReadsAsZerosInRecoveryOnly() {
        assertEquals(0, valueOf(slru, 7));
        assertFalse(Files.exists(file("0000")), "reading creates no file");
        slru.recoveryOver();
        assertEquals(0, valueOf(slru, 7), "a page in memory needs no file");
        assertThrows(DamagedDataException.class, () -> valueOf(slru, 8));
    }

    @Test
    void fileThatEndsBeforeThePageIsDamagedEvenInRecovery() throws IOException {
        Files.write(file("0000"), new byte[8192 * 3 - 1]);
        assertEquals(0, valueOf(slru, 1));
        DamagedDataException e = assertThrows(DamagedDataException.class, () -> valueOf(slru, 2));
        assertTrue(e.getMessage().contains("file=" + file("0000")), e.getMessage());
    }

    @Test
    void segmentsHoldThirtyTwoPagesAndEndWithTheHighestPageWritten() throws IOException {
        zero(slru, 31, true);
        zero(slru, 34, true);
        assertEquals(32 * 8192, Files.size(file("0000")));
        assertEquals(3 * 8192, Files.size(file("0001")));
        assertTrue(
                slru.physicalPageExists(32), "the hole before a written page is part of the file");
        assertFalse(slru.physicalPageExists(35));
        assertFalse(slru.physicalPageExists(64));
    }

    @Test
    void zeroedPageReachesTheFileOnlyWhenWritten() {
        zero(slru, 0, false);
        assertFalse(Files.exists(file("0000")));
        slru.checkpoint();
        assertTrue(Files.exists(file("0000")));
    }

    @Test
    void moreDirtyPagesThanSlotsAllSurvive() {
        for (int page = 0; page < 100; page++) {
            zero(slru, page, false);
            fill(slru, page, page + 1);
        }
        fill(slru, 50, 99);
        slru.checkpoint();
        Slru reread = open(8);
        reread.recoveryOver();
        for (int page = 0; page < 100; page++) {
            assertEquals((byte) (page == 50 ? 99 : page + 1), valueOf(reread, page));
        }
    }

    @Test
    void truncateRemovesWholeSegmentsBeforeTheCutoff() throws IOException {
        for (int page = 0; page < 128; page += 32) {
            zero(slru, page, true);
        }
        Files.write(file("not-a-segment"), new byte[1]);
        Files.write(file("00ab"), new byte[1]);
        assertTrue(slru.truncate(95), "page 95 is the last of segment 2");
        assertFalse(Files.exists(file("0000")));
        assertFalse(Files.exists(file("0001")));
        assertTrue(Files.exists(file("0002")));
        assertTrue(Files.exists(file("0003")));
        assertTrue(Files.exists(file("not-a-segment")));
        assertTrue(Files.exists(file("00ab")), "segment names are in capitals");
    }

    @Test
    void truncatePastTheLatestPageIsRefusedAsWraparound() {
        zero(slru, 0, true);
        zero(slru, 64, true);
        assertFalse(slru.truncate(65));
        assertTrue(Files.exists(file("0000")));
    }

    @Test
    void truncatedDirtyPageDoesNotComeBackAtTheCheckpoint() {
        zero(slru, 3, false);
        zero(slru, 64, false);
        assertTrue(slru.truncate(64));
        slru.checkpoint();
        assertFalse(Files.exists(file("0000")));
        assertTrue(Files.exists(file("0002")));
        assertEquals(0, valueOf(slru, 3), "and reads as zeros again");
    }

    @Test
    void deletedSegmentIsForgottenInMemoryToo() {
        zero(slru, 3, true);
        fill(slru, 3, 9);
        zero(slru, 33, false);
        slru.deleteSegment(0);
        assertFalse(Files.exists(file("0000")));
        slru.checkpoint();
        assertFalse(Files.exists(file("0000")));
        assertTrue(Files.exists(file("0001")));
        assertEquals(0, valueOf(slru, 3));
    }

    @Test
    void checkpointSyncsEveryWrittenFileOnceAndTheDirectory() {
        RecordingDisk disk = new RecordingDisk();
        Slru durable =
                new Slru(disk.disk, directory.toString(), 4, MAX_PAGE, true, (a, b) -> a < b);
        zero(durable, 0, true);
        zero(durable, 1, false);
        zero(durable, 40, true);
        zero(durable, 70, true);
        durable.deleteSegment(2);
        durable.checkpoint();
        assertEquals(
                List.of(file("0000").toString(), file("0001").toString(), directory.toString()),
                disk.syncs);
        disk.syncs.clear();
        durable.checkpoint();
        assertEquals(List.of(directory.toString()), disk.syncs, "nothing new to sync");
    }

    @Test
    void logWithoutDurabilityIsWrittenButNeverSynced() {
        RecordingDisk disk = new RecordingDisk();
        Slru fleeting =
                new Slru(disk.disk, directory.toString(), 4, MAX_PAGE, false, (a, b) -> a < b);
        zero(fleeting, 0, false);
        fleeting.checkpoint();
        assertTrue(Files.exists(file("0000")));
        assertEquals(List.of(), disk.syncs);
    }

    @Test
    void failedSyncStopsTheKernel() {
        RecordingDisk disk = new RecordingDisk();
        Slru durable =
                new Slru(disk.disk, directory.toString(), 4, MAX_PAGE, true, (a, b) -> a < b);
        zero(durable, 0, false);
        disk.failSyncs = true;
        KernelStoppedException e = assertThrows(KernelStoppedException.class, durable::checkpoint);
        assertFalse(e.mayRetry());
    }

    @Test
    void namesOfSegments() {
        assertEquals(0x1F, Slru.segmentOf("001F"));
        assertEquals(0x1ABCD, Slru.segmentOf("1ABCD"));
        assertEquals(-1, Slru.segmentOf("1F"));
        assertEquals(-1, Slru.segmentOf("001f"));
        assertEquals(-1, Slru.segmentOf("1234567"));
        assertTrue(slru.path(0x1ABCD).endsWith("/1ABCD"));
        assertTrue(slru.path(10).endsWith("/000A"));
    }
}
