package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.testkit.FaultyDisk;
import org.pgkernel.testkit.FaultyDisk.Call;

class TimelineHistoryTest {
    private final WalLog log = new WalLog(1 << 16);
    private final String directory = log.directory.toString();

    @AfterEach
    void removeLog() {
        log.close();
    }

    @Test
    void historyIsWrittenAsPostgresDoes() throws IOException {
        TimelineHistory.of(1)
                .write(log.disk, directory, 2, 0x3000060L, "no recovery target specified");
        assertEquals("1\t0/3000060\tno recovery target specified\n", text(2));
        TimelineHistory.read(log.disk, directory, 2)
                .write(log.disk, directory, 4, 0x1_05000000L, "two\nlines");
        assertEquals(
                "1\t0/3000060\tno recovery target specified\n\n2\t1/5000000\ttwo lines\n", text(4));
        TimelineHistory history = TimelineHistory.read(log.disk, directory, 4);
        assertEquals(
                List.of(
                        new TimelineHistory.Entry(1, 0, 0x3000060L),
                        new TimelineHistory.Entry(2, 0x3000060L, 0x1_05000000L),
                        new TimelineHistory.Entry(4, 0x1_05000000L, 0)),
                history.entries());
        assertEquals(4, history.newest());
        assertEquals(1, history.timelineAt(0x300005FL));
        assertEquals(2, history.timelineAt(0x3000060L));
        assertEquals(2, history.timelineAt(0x1_04FFFFFFL));
        assertEquals(4, history.timelineAt(-1));
        assertEquals(2, log.disk.list(directory).size());
    }

    @Test
    void timelineWithoutFileHasNoAncestors() {
        assertEquals(
                List.of(new TimelineHistory.Entry(7, 0, 0)),
                TimelineHistory.read(log.disk, directory, 7).entries());
        assertEquals(1, TimelineHistory.read(log.disk, directory, 1).newest());
    }

    @Test
    void nextFreeIsTheFirstWithoutHistory() throws IOException {
        assertEquals(2, TimelineHistory.nextFree(log.disk, directory, 1));
        write(2, "1\t0/1\tx\n");
        write(3, "1\t0/1\tx\n");
        write(5, "1\t0/1\tx\n");
        assertEquals(4, TimelineHistory.nextFree(log.disk, directory, 1));
        assertEquals(6, TimelineHistory.nextFree(log.disk, directory, 4));
    }

    @Test
    void existingHistoryIsNotOverwritten() throws IOException {
        write(2, "1\t0/1\tx\n");
        assertThrows(
                RefusedException.class,
                () -> TimelineHistory.of(1).write(log.disk, directory, 2, 5, "y"));
        assertThrows(
                RefusedException.class,
                () -> TimelineHistory.of(3).write(log.disk, directory, 3, 5, "y"));
        assertEquals("1\t0/1\tx\n", text(2));
    }

    @Test
    void failedWriteLeavesNoHistory() {
        FaultyDisk disk = new FaultyDisk(log.disk);
        disk.fail(Call.WRITE, "", DiskException.ENOSPC);
        assertThrows(
                DiskException.class, () -> TimelineHistory.of(1).write(disk, directory, 2, 5, "y"));
        assertEquals(List.of(), log.disk.list(directory));
    }

    @Test
    void commentsAndEmptyLinesAndWhatFollowsThePositionAreIgnored() throws IOException {
        write(3, "# a comment\n\n  1\t0/10\n2 0/20 whatever it says\n\n");
        assertEquals(3, TimelineHistory.read(log.disk, directory, 3).entries().size());
    }

    @Test
    void damagedHistoriesAreNamed() throws IOException {
        for (String text :
                new String[] {
                    "x\t0/1\tr\n",
                    "1\n",
                    "1\tzz\n",
                    "1\t0/1\n1\t0/2\n",
                    "2\t0/1\n1\t0/2\n",
                    "5\t0/1\n",
                    "9\t0/1\n",
                    "0\t0/1\n",
                    "-1\t0/1\n",
                    "1\t0/5\n2\t0/4\n",
                    "99999999999999999999\t0/1\n",
                    "\0\0\0\0",
                    "1\t0/123456789\n"
                }) {
            write(5, text);
            DamagedDataException e =
                    assertThrows(
                            DamagedDataException.class,
                            () -> TimelineHistory.read(log.disk, directory, 5),
                            text);
            assertTrue(
                    e.getMessage().endsWith("file=" + directory + "/00000005.history"),
                    e.getMessage());
            assertTrue(e.getMessage().chars().allMatch(c -> c >= ' ' || c == '\t'), e.getMessage());
        }
        Files.write(path(5), new byte[5 << 20]);
        assertThrows(
                DamagedDataException.class, () -> TimelineHistory.read(log.disk, directory, 5));
    }

    @Test
    void theNewestTimelinesFileServesAllOfItsFirstSegment() throws IOException {
        long switchPoint = writeTwoTimelines();
        TimelineHistory history = TimelineHistory.read(log.disk, directory, 2);
        Files.delete(log.file(1, log.start));
        List<WalLog.Copy> all = log.read(history, log.start);
        assertEquals(2, all.size());
        assertEquals(switchPoint, all.get(1).lsn());
        assertEquals(2, log.fileTimeline);
    }

    /** WAL-10. */
    @Test
    void recordsOfADeadTimelineAreNotReadPastTheSwitch() throws IOException {
        long switchPoint = writeTwoTimelines();
        TimelineHistory history = TimelineHistory.read(log.disk, directory, 2);
        Files.delete(log.file(2, log.start));
        assertEquals(1, log.read(history, log.start).size());
        assertEquals(EndOfWal.Reason.MISSING_SEGMENT, log.end.reason());
        assertEquals(switchPoint, log.endOfLastRecord);
        assertEquals(1, log.fileTimeline);
    }

    /** WAL-10. */
    @Test
    void pagesOfAnAncestorPastTheSwitchEndTheLog() throws IOException {
        long switchPoint = writeTwoTimelines();
        TimelineHistory history = TimelineHistory.read(log.disk, directory, 2);
        // As if the new timeline's file had been overwritten by the old one's.
        Files.write(log.file(2, log.start), Files.readAllBytes(log.file(1, log.start)));
        List<WalLog.Copy> all = log.read(history, log.start);
        assertTrue(
                all.stream()
                        .allMatch(
                                copy -> copy.end() < (switchPoint / WalLog.PAGE + 1) * WalLog.PAGE),
                all::toString);
        assertEquals(EndOfWal.Reason.BAD_PAGE_HEADER, log.end.reason());
    }

    /**
     * @return the switch point, in the middle of the first segment
     */
    private long writeTwoTimelines() {
        long switchPoint;
        long last;
        try (WalWriter writer = log.writer()) {
            switchPoint = writer.append(WalLog.plain(10_000));
            last = writer.lastRecord();
            writer.append(WalLog.plain(30_000));
            writer.flush();
        }
        WalWriter.copySegmentForNewTimeline(
                log.disk, directory, 1, 2, switchPoint, log.segmentSize);
        TimelineHistory.of(1).write(log.disk, directory, 2, switchPoint, "promoted");
        try (WalWriter writer = log.writer(2, switchPoint, last, 0)) {
            writer.append(WalLog.plain(20_000));
            writer.flush();
        }
        return switchPoint;
    }

    private Path path(int timeline) {
        return log.directory.resolve(TimelineHistory.fileName(timeline));
    }

    private String text(int timeline) throws IOException {
        return Files.readString(path(timeline));
    }

    private void write(int timeline, String text) throws IOException {
        Files.writeString(path(timeline), text);
    }
}
