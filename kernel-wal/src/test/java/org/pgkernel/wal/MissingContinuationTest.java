package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.wal.EndOfWal.Reason;

/** C25, the log's side: the second half of a record never existed. */
class MissingContinuationTest {
    private final WalLog log = new WalLog(1 << 16);
    private final long segmentTwo = 2L * log.segmentSize;

    @AfterEach
    void removeLog() {
        log.close();
    }

    @Test
    @DisplayName("C25 1: the first half stays; the log goes on with a record that names it")
    void firstHalfIsSkipped() throws IOException {
        long lost = loseSecondHalf(300);
        for (NewWal means : NewWal.values()) {
            try (WalLog copy = log.copyOf()) {
                firstHalfIsSkipped(copy, lost, means);
            }
        }
    }

    private void firstHalfIsSkipped(WalLog log, long lost, NewWal means) {
        List<WalLog.Copy> good = log.read();
        assertEquals(Reason.MISSING_SEGMENT, log.end.reason());
        assertEquals(lost, log.abortedRecord);
        assertEquals(segmentTwo, log.missingContinuation);
        byte[] firstHalf = log.bytes(lost, (int) (segmentTwo - lost));
        means.goOn(log, List.of(WalLog.plain(500)));
        assertFirstIsOverwrite(log);
        List<WalLog.Copy> all = log.read();
        assertEquals(good, all.subList(0, good.size()));
        assertEquals(good.size() + 2, all.size());
        assertEquals(segmentTwo + WalPageHeader.LONG_SIZE, all.get(good.size()).lsn());
        assertEquals(good.get(good.size() - 1).lsn(), all.get(good.size()).prev());
        assertEquals(
                java.nio.ByteBuffer.wrap(firstHalf),
                java.nio.ByteBuffer.wrap(log.bytes(lost, firstHalf.length)));
        assertEquals(0, log.abortedRecord);
    }

    @Test
    @DisplayName("C25 2: a standby that waits for the second half goes on with what came instead")
    void waitingReaderGoesOn() throws IOException {
        long lost = loseSecondHalf(300);
        try (WalReader reader = log.reader()) {
            reader.begin(log.start);
            int count = log.drain(reader).size();
            assertEquals(lost, reader.abortedRecord());
            assertNull(reader.next());
            goOn(lost);
            assertNotNull(reader.next());
            assertEquals(0, reader.abortedRecord());
            assertEquals(0, reader.missingContinuation());
            assertNotNull(reader.next());
            assertNull(reader.next());
            assertEquals(log.read().size(), count + 2);
        }
    }

    @Test
    @DisplayName(
            "C25 3: the record before the lost one ends on a page border, so its LSN counts from after the page header")
    void lostRecordBeginsAfterAPageHeader() throws IOException {
        long lost = loseSecondHalf(0);
        assertEquals(WalPageHeader.SHORT_SIZE, lost & WalLog.PAGE - 1);
        for (NewWal means : NewWal.values()) {
            try (WalLog copy = log.copyOf()) {
                int count = copy.read().size();
                assertEquals(lost, copy.abortedRecord);
                means.goOn(copy, List.of(WalLog.plain(500)));
                assertFirstIsOverwrite(copy);
                assertEquals(count + 2, copy.read().size());
            }
        }
    }

    @Test
    @DisplayName(
            "C25 5: on a new timeline writing starts right after the last valid record, without an overwrite record")
    void newTimelineNeedsNoOverwrite() throws IOException {
        long lost = loseSecondHalf(300);
        for (NewWal means : NewWal.values()) {
            try (WalLog copy = log.copyOf()) {
                List<WalLog.Copy> good = copy.read();
                long switchPoint = copy.endOfLastRecord;
                assertEquals(lost, switchPoint);
                String directory = copy.directory.toString();
                WalWriter.copySegmentForNewTimeline(
                        copy.disk, directory, 1, 2, switchPoint, copy.segmentSize);
                TimelineHistory.of(1)
                        .write(copy.disk, directory, 2, switchPoint, "lost the primary");
                means.write(
                        copy,
                        2,
                        switchPoint,
                        copy.lastRecord,
                        0,
                        List.of(WalLog.plain(20_000), WalLog.plain(7)));
                List<WalLog.Copy> all =
                        copy.read(TimelineHistory.read(copy.disk, directory, 2), copy.start);
                assertEquals(good, all.subList(0, good.size()));
                assertEquals(good.size() + 2, all.size());
                assertEquals(lost, all.get(good.size()).lsn());
                assertEquals(2, copy.fileTimeline);
            }
        }
    }

    /** WAL-11. */
    @Test
    @DisplayName("C25: a record that names another one as lost is not believed")
    void overwriteMustNameTheLostRecord() throws IOException {
        long lost = loseSecondHalf(300);
        int count = log.read().size();
        goOn(lost - 8);
        assertEquals(count, log.read().size());
        assertEquals(Reason.BAD_CONTINUATION, log.end.reason());
    }

    @Test
    void overwriteWithoutALostRecordIsNotBelieved() {
        try (WalWriter writer = log.writer()) {
            writer.append(WalLog.plain(100));
            writer.append(WalLog.overwrite(writer.lastRecord()));
            writer.flush();
        }
        assertEquals(1, log.read().size());
        assertEquals(Reason.BAD_CONTINUATION, log.end.reason());
    }

    @Test
    void readingMayBeginAtTheOverwriteRecord() throws IOException {
        long lost = loseSecondHalf(300);
        log.read();
        goOn(lost);
        assertEquals(2, log.read(TimelineHistory.of(1), segmentTwo).size());
    }

    @Test
    void continuationCanBeMissingOnALaterPageOfTheSameSegment() {
        long last;
        long lost;
        try (WalWriter writer = log.writer()) {
            writer.append(WalLog.plain(100));
            writer.flush();
            last = writer.lastRecord();
            lost = writer.nextRecordLsn();
            writer.append(WalLog.plain(30_000));
            writer.flush();
        }
        long missing = log.segmentSize + 2L * WalLog.PAGE;
        log.patch(missing, new byte[2 * WalLog.PAGE]);
        assertEquals(1, log.read().size());
        assertEquals(lost, log.abortedRecord);
        assertEquals(missing, log.missingContinuation);
        try (WalWriter writer = log.writer(1, missing, last, missing)) {
            writer.append(WalLog.overwrite(lost));
            writer.flush();
        }
        assertEquals(2, log.read().size());
    }

    @Test
    void missingContinuationIsWrittenOverOnlyFromItsPageStart() {
        assertThrows(
                RefusedException.class,
                () -> log.writer(1, segmentTwo + WalLog.PAGE, log.start, segmentTwo));
        assertThrows(
                RefusedException.class,
                () -> log.writer(1, segmentTwo + 400, log.start, segmentTwo + 400));
    }

    /**
     * Writes a log whose last record begins {@code left} bytes before the end of segment 1, or, for
     * 0, after the header of its last page; and loses segment 2.
     *
     * @return the lost record's LSN
     */
    private long loseSecondHalf(int left) throws IOException {
        long lost;
        try (WalWriter writer = log.writer()) {
            long target = left == 0 ? segmentTwo - WalLog.PAGE : segmentTwo;
            while (writer.nextRecordLsn() < target - WalLog.PAGE - 4000) {
                writer.append(WalLog.plain(3000));
            }
            while (WalLog.fillPageTo(writer, left) < target - left) {
                assertEquals(0, writer.nextRecordLsn() % 8);
            }
            lost = writer.nextRecordLsn();
            writer.append(WalLog.plain(20_000));
            writer.flush();
        }
        Files.delete(log.file(1, segmentTwo));
        return lost;
    }

    private void goOn(long named) {
        List<WalLog.Copy> good = log.read();
        long last = good.get(good.size() - 1).lsn();
        try (WalWriter writer = log.writer(1, segmentTwo, last, segmentTwo)) {
            writer.append(WalLog.overwrite(named));
            writer.append(WalLog.plain(500));
            writer.flush();
        }
        assertFirstIsOverwrite(log);
    }

    private void assertFirstIsOverwrite(WalLog log) {
        assertEquals(
                WalPageHeader.XLP_FIRST_IS_OVERWRITE_CONTRECORD,
                log.bytes(segmentTwo + 2, 1)[0] & WalPageHeader.XLP_FIRST_IS_OVERWRITE_CONTRECORD);
    }
}
