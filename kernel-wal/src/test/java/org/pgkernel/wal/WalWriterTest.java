package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.testkit.FaultyDisk;
import org.pgkernel.testkit.FaultyDisk.Call;

class WalWriterTest {
    private final WalLog log = new WalLog(1 << 16);
    private final FaultyDisk disk = new FaultyDisk(new PosixDisk());
    private final long segmentTwo = 2L * log.segmentSize;

    @AfterEach
    void removeLog() {
        log.close();
    }

    @Test
    @DisplayName(
            "R08: writing that starts in the middle of a segment's first page yields a correct long"
                    + " header")
    void longHeaderWhenStartingInTheMiddleOfTheFirstPage() throws IOException {
        for (byte[] existing :
                new byte[][] {null, new byte[0], new byte[log.segmentSize], garbage()}) {
            Files.deleteIfExists(log.file(1, segmentTwo));
            if (existing != null) {
                Files.write(log.file(1, segmentTwo), existing);
            }
            try (WalWriter writer = log.writer(1, segmentTwo + 800, log.start, 0)) {
                writer.append(WalLog.plain(20_000));
                writer.flush();
            }
            UnsafeBuffer header = new UnsafeBuffer(log.bytes(segmentTwo, WalPageHeader.LONG_SIZE));
            assertEquals(WalPageHeader.MAGIC, WalPageHeader.magic(header, 0));
            assertEquals(segmentTwo, WalPageHeader.pageLsn(header, 0));
            assertEquals(log.segmentSize, WalPageHeader.segmentSize(header, 0));
            assertEquals(WalLog.SYSTEM, WalPageHeader.systemIdentifier(header, 0));
            assertEquals(1, log.read(TimelineHistory.of(1), segmentTwo + 800).size());
            assertEquals(log.segmentSize, Files.size(log.file(1, segmentTwo)));
        }
    }

    @Test
    @DisplayName("R08: a segment that is begun on a later page is readable too")
    void longHeaderWhenStartingOnALaterPage() {
        try (WalWriter writer = log.writer(1, segmentTwo + 3 * WalLog.PAGE + 80, log.start, 0)) {
            writer.append(WalLog.plain(20_000));
            writer.flush();
        }
        assertEquals(1, log.read(TimelineHistory.of(1), segmentTwo + 3 * WalLog.PAGE + 80).size());
    }

    @Test
    void tailOfThePageIsKeptAndItsRestZeroed() {
        long end;
        long last;
        try (WalWriter writer = log.writer()) {
            writer.append(WalLog.plain(1000));
            end = writer.append(WalLog.plain(500));
            last = writer.lastRecord();
            writer.append(WalLog.plain(3000));
            writer.flush();
        }
        byte[] before = log.bytes(log.segmentSize, (int) (end - log.segmentSize));
        try (WalWriter writer = log.writer(1, end, last, 0)) {
            writer.append(WalLog.plain(40));
            writer.flush();
        }
        assertEquals(3, log.read().size());
        assertTrue(Arrays.equals(before, log.bytes(log.segmentSize, before.length)));
        int used = (int) (log.endOfLastRecord - log.segmentSize);
        assertTrue(
                Arrays.equals(
                        new byte[WalLog.PAGE - used],
                        log.bytes(log.endOfLastRecord, WalLog.PAGE - used)));
    }

    @Test
    @DisplayName(
            "R18: a new timeline's segment holds the old one up to the switch point and zeros"
                    + " after")
    void segmentIsCopiedUpToTheSwitchPoint() throws IOException {
        long switchPoint;
        long last;
        try (WalWriter writer = log.writer()) {
            writer.append(WalLog.plain(1000));
            switchPoint = writer.append(WalLog.plain(20_000));
            last = writer.lastRecord();
            writer.append(WalLog.plain(100));
            writer.flush();
        }
        WalWriter.copySegmentForNewTimeline(
                disk, log.directory.toString(), 1, 2, switchPoint, log.segmentSize);
        byte[] copied = Files.readAllBytes(log.file(2, switchPoint));
        int length = (int) (switchPoint - log.segmentSize);
        assertEquals(log.segmentSize, copied.length);
        assertTrue(
                Arrays.equals(log.bytes(log.segmentSize, length), Arrays.copyOf(copied, length)));
        assertTrue(
                Arrays.equals(
                        new byte[copied.length - length],
                        Arrays.copyOfRange(copied, length, copied.length)));
        assertTrue(disk.count(Call.SYNC) > 0);
        // A crash here: the old timeline is all there.
        assertEquals(3, log.read().size());
        TimelineHistory.of(1).write(log.disk, log.directory.toString(), 2, switchPoint, "promoted");
        TimelineHistory history = TimelineHistory.read(log.disk, log.directory.toString(), 2);
        // A crash here: the new timeline ends where it begins, and its last record is found.
        assertEquals(2, log.read(history, log.start).size());
        assertEquals(last, log.lastRecord);
        assertEquals(switchPoint, log.endOfLastRecord);
        try (WalWriter writer = log.writer(2, switchPoint, last, 0)) {
            writer.append(WalLog.plain(90_000));
            writer.flush();
        }
        List<WalLog.Copy> all = log.read(history, log.start);
        assertEquals(3, all.size());
        assertEquals(90_000, all.get(2).data().capacity());
        assertEquals(switchPoint, all.get(2).lsn());
        // The old timeline is as it was.
        assertEquals(3, log.read().size());
        assertEquals(100, log.read().get(2).data().capacity());
    }

    @Test
    @DisplayName(
            "R18: at a segment border the new timeline begins with an empty segment, whatever had"
                    + " its name")
    void newTimelineAtASegmentBorderBeginsEmpty() throws IOException {
        Files.write(log.file(2, segmentTwo), garbage());
        WalWriter.copySegmentForNewTimeline(
                disk, log.directory.toString(), 1, 2, segmentTwo, log.segmentSize);
        assertTrue(
                Arrays.equals(
                        new byte[log.segmentSize], Files.readAllBytes(log.file(2, segmentTwo))));
    }

    @Test
    @DisplayName("R18: a switch that fails leaves no file of the new timeline")
    void failedSwitchLeavesNothing() throws IOException {
        try (WalWriter writer = log.writer()) {
            writer.append(WalLog.plain(1000));
            writer.flush();
        }
        disk.fail(Call.RENAME, "", DiskException.EIO);
        assertThrows(DiskException.class, () -> copyAt(log.start + 100));
        disk.clear(Call.RENAME);
        disk.fail(Call.WRITE, "", DiskException.ENOSPC);
        assertThrows(DiskException.class, () -> copyAt(log.start + 100));
        disk.clear(Call.WRITE);
        disk.fail(Call.SYNC, "", DiskException.EIO);
        assertThrows(KernelStoppedException.class, () -> copyAt(log.start + 100));
        disk.clear(Call.SYNC);
        disk.readableBytes(100);
        assertTrue(
                assertThrows(DamagedDataException.class, () -> copyAt(log.start + 100))
                        .getMessage()
                        .contains("file="));
        disk.readableBytes(Long.MAX_VALUE);
        assertThrows(DamagedDataException.class, () -> copyAt(segmentTwo + 100));
        assertFalse(Files.exists(log.file(2, log.start)));
        copyAt(log.start + 100);
        assertEquals(List.of(), temporaries());
    }

    private void copyAt(long switchPoint) {
        WalWriter.copySegmentForNewTimeline(
                disk, log.directory.toString(), 1, 2, switchPoint, log.segmentSize);
    }

    @Test
    void newSegmentsAreWholeAndDurableBeforeTheyHaveTheirName() throws IOException {
        log.disk = disk;
        try (WalWriter writer = log.writer()) {
            writer.append(WalLog.plain(150_000));
            disk.fail(
                    Call.RENAME,
                    log.file(1, 4L * log.segmentSize).getFileName().toString(),
                    DiskException.EIO);
            assertThrows(KernelStoppedException.class, () -> writer.append(WalLog.plain(150_000)));
            disk.clear(Call.RENAME);
            assertThrows(KernelStoppedException.class, writer::flush);
            assertThrows(KernelStoppedException.class, () -> writer.append(WalLog.plain(1)));
        }
        for (int segment = 1; segment <= 3; segment++) {
            assertEquals(
                    log.segmentSize, Files.size(log.file(1, (long) segment * log.segmentSize)));
        }
        assertFalse(Files.exists(log.file(1, 4L * log.segmentSize)));
    }

    /** WAL-12. */
    @Test
    void failedSyncStopsTheWriterAndIsNotRetried() {
        log.disk = disk;
        try (WalWriter writer = log.writer()) {
            writer.append(WalLog.plain(100));
            writer.flush();
            long flushed = writer.flushedLsn();
            writer.append(WalLog.plain(100));
            disk.fail(Call.SYNC, "", DiskException.EIO);
            assertThrows(KernelStoppedException.class, writer::flush);
            disk.clear(Call.SYNC);
            int syncs = disk.count(Call.SYNC);
            assertThrows(KernelStoppedException.class, writer::flush);
            assertThrows(KernelStoppedException.class, () -> writer.append(WalLog.plain(100)));
            assertEquals(syncs, disk.count(Call.SYNC));
            assertEquals(flushed, writer.flushedLsn());
        }
    }

    @Test
    void fullSegmentIsSyncedBeforeTheNextOneIsWritten() {
        log.disk = disk;
        try (WalWriter writer = log.writer()) {
            writer.append(WalLog.plain(100));
            writer.flush();
            disk.fail(
                    Call.SYNC, log.file(1, log.start).getFileName().toString(), DiskException.EIO);
            assertThrows(KernelStoppedException.class, () -> writer.append(WalLog.plain(150_000)));
            assertFalse(Files.exists(log.file(1, segmentTwo)));
        }
    }

    @Test
    void flushWithNothingNewDoesNothing() {
        log.disk = disk;
        try (WalWriter writer = log.writer()) {
            writer.flush();
            assertFalse(Files.exists(log.file(1, log.start)));
            writer.append(WalLog.plain(100));
            writer.flush();
            int syncs = disk.count(Call.SYNC);
            writer.flush();
            assertEquals(syncs, disk.count(Call.SYNC));
        }
    }

    @Test
    void recycledSegmentIsTakenOverAndFilledUp() throws IOException {
        Files.write(log.file(1, log.start), garbage());
        Files.write(log.file(1, segmentTwo), Arrays.copyOf(garbage(), 5000));
        try (WalWriter writer = log.writer()) {
            writer.append(WalLog.plain(70_000));
            writer.flush();
        }
        assertEquals(1, log.read().size());
        assertEquals(log.segmentSize, Files.size(log.file(1, segmentTwo)));
    }

    /**
     * WAL-9: a lost attempt's record that happens to stand right where a page-exact log ends, with
     * the right back-link, is not its continuation.
     */
    @Test
    void whatStandsBehindALogThatEndsWithItsPageIsNotReadOn() {
        for (boolean atSegmentEnd : new boolean[] {false, true}) {
            try (WalLog other = new WalLog(1 << 16)) {
                long border =
                        atSegmentEnd ? 2L * other.segmentSize : other.segmentSize + WalLog.PAGE;
                int length =
                        (int) (border - other.start)
                                - (atSegmentEnd ? 7 * WalPageHeader.SHORT_SIZE : 0);
                long stale;
                try (WalWriter writer = other.writer()) {
                    assertEquals(border, writer.append(WalLog.ofTotalLength(length)));
                    writer.append(WalLog.plain(77));
                    writer.flush();
                    stale = writer.lastRecord();
                }
                assertEquals(border + WalPageHeader.sizeAt(border, other.segmentSize), stale);
                try (WalWriter writer = other.writer()) {
                    writer.append(WalLog.ofTotalLength(length));
                    writer.flush();
                }
                assertEquals(1, other.read().size());
                assertEquals(border, other.endOfLastRecord);
            }
        }
    }

    @Test
    void recordNeverBeginsInAPageHeader() {
        try (WalWriter writer = log.writer(1, segmentTwo, log.start, 0)) {
            assertEquals(segmentTwo + 40, writer.nextRecordLsn());
            writer.append(WalLog.plain(1));
            assertEquals(segmentTwo + 40, writer.lastRecord());
            long end = WalLog.fillPageTo(writer, 0);
            assertEquals(0, end % WalLog.PAGE);
            assertEquals(end + 24, writer.nextRecordLsn());
        }
        assertThrows(RefusedException.class, () -> log.writer(1, segmentTwo + 24, log.start, 0));
        assertThrows(
                RefusedException.class,
                () -> log.writer(1, segmentTwo + WalLog.PAGE + 16, log.start, 0));
        assertThrows(RefusedException.class, () -> log.writer(1, log.start + 4, 0, 0));
    }

    @Test
    void lengthsBeyondTheFormatAreRefused() {
        UnsafeBuffer bytes = new UnsafeBuffer(new byte[65_536]);
        WalRecordBuilder builder =
                new WalRecordBuilder().begin(10, 0, 0).block(0, 1, 2, 3, ForkNumber.MAIN, 0, 0);
        builder.blockData(0, bytes, 0, 65_535);
        assertThrows(RefusedException.class, () -> builder.blockData(0, bytes, 0, 1));
    }

    private byte[] garbage() {
        byte[] garbage = new byte[log.segmentSize];
        new java.util.Random(3).nextBytes(garbage);
        return garbage;
    }

    private List<String> temporaries() {
        return disk.list(log.directory.toString()).stream()
                .filter(name -> name.startsWith("xlogtemp"))
                .toList();
    }
}
