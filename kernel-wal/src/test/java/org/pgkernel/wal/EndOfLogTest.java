package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.wal.EndOfWal.Reason;

/**
 * C24: garbage where the next record should start. Each case writes a good log, puts the garbage
 * after it, and then demands a soft end at the end of the last good record, no allocation for
 * unverified lengths, and that new WAL and old are both read afterwards.
 */
class EndOfLogTest {
    private WalLog log;
    private long end;
    private long last;
    private List<WalLog.Copy> good;

    @BeforeEach
    void makeLog() {
        log = new WalLog(1 << 16);
    }

    @AfterEach
    void removeLog() {
        log.close();
    }

    @Test
    @DisplayName(
            "C24 a: a header split over a page border claims 900 MB, and the next page is from an older use of the file")
    void splitHeaderWithHugeLengthAndOlderPage() {
        writeGood(16);
        log.patchInt(end, 900 << 20);
        olderPage(nextPage());
        softEnd(Reason.BAD_PAGE_HEADER);
        assertEquals(end, log.abortedRecord);
        assertEquals(nextPage(), log.missingContinuation);
        newWalContinues();
    }

    @Test
    @DisplayName("C24 a, next page never written")
    void splitHeaderWithHugeLengthAndZeroPage() {
        writeGood(8);
        log.patchInt(end, 900 << 20);
        log.patch(nextPage(), new byte[WalLog.PAGE]);
        softEnd(Reason.BAD_PAGE_HEADER);
        newWalContinues();
    }

    @Test
    @DisplayName("C24 b: a length of 10 in the last 8 to 23 bytes of a page")
    void lengthBelowTheHeadersAtThePageEnd() {
        for (int left = 8; left < 24; left += 8) {
            removeLog();
            makeLog();
            writeGood(left);
            log.patchInt(end, 10);
            softEnd(Reason.BAD_LENGTH);
            assertEquals(0, log.abortedRecord);
            newWalContinues();
        }
    }

    @Test
    @DisplayName("C24 c: a complete older record with right checksum and wrong back-link")
    void olderRecordWithWrongBackLink() {
        writeGood(3000);
        record(end, WalLog.plain(50), last - 8);
        softEnd(Reason.BAD_PREV_LINK);
        newWalContinues();
    }

    @Test
    @DisplayName("C24 c, the older record crosses a page border")
    void olderRecordAcrossPagesWithWrongBackLink() {
        writeGood(16);
        try (WalWriter writer = log.writer(1, end, last - 8, 0)) {
            writer.append(WalLog.plain(500));
            writer.flush();
        }
        softEnd(Reason.BAD_PREV_LINK);
        newWalContinues();
    }

    @Test
    @DisplayName("C24 d: the right page address, the wrong continuation length")
    void wrongContinuationLength() {
        writeGood(96);
        try (WalWriter writer = log.writer(1, end, last, 0)) {
            writer.append(WalLog.plain(20_000));
            writer.flush();
        }
        log.patchInt(nextPage() + 16, 17);
        softEnd(Reason.BAD_CONTINUATION);
        newWalContinues();
    }

    @Test
    @DisplayName("C24 d, no continuation at all")
    void noContinuationFlag() {
        writeGood(96);
        try (WalWriter writer = log.writer(1, end, last, 0)) {
            writer.append(WalLog.plain(20_000));
            writer.flush();
        }
        log.patch(nextPage() + 2, new byte[] {0});
        softEnd(Reason.BAD_CONTINUATION);
        newWalContinues();
    }

    @Test
    @DisplayName("C24 e: zeros")
    void zeros() {
        writeGood(3000);
        softEnd(Reason.ZERO_LENGTH);
        newWalContinues();
    }

    @Test
    @DisplayName("C24 f: a torn record across a page and a segment border")
    void tornRecordAcrossSegments() {
        try (WalWriter writer = log.writer()) {
            while (writer.nextRecordLsn() < 2L * log.segmentSize - WalLog.PAGE) {
                writer.append(WalLog.plain(3000));
            }
            end = WalLog.fillPageTo(writer, 512);
            last = writer.lastRecord();
            writer.flush();
            writer.append(WalLog.plain(9000));
            writer.flush();
        }
        List<WalLog.Copy> all = log.read();
        good = all.subList(0, all.size() - 1);
        log.patch(2L * log.segmentSize + 1024, new byte[512]);
        softEnd(Reason.BAD_CRC);
        newWalContinues();
    }

    @Test
    @DisplayName(
            "C24 g: the log ends exactly on a segment border; the next segment is missing, recycled, or of zeros")
    void endOnSegmentBorder() throws IOException {
        for (Reason reason :
                new Reason[] {
                    Reason.MISSING_SEGMENT, Reason.BAD_PAGE_HEADER, Reason.SHORT_SEGMENT
                }) {
            removeLog();
            makeLog();
            try (WalWriter writer = log.writer()) {
                while (writer.nextRecordLsn() < 2L * log.segmentSize - WalLog.PAGE - 4000) {
                    writer.append(WalLog.plain(3000));
                }
                do {
                    end = WalLog.fillPageTo(writer, 0);
                } while ((end & log.segmentSize - 1) != 0);
                last = writer.lastRecord();
                writer.flush();
            }
            assertEquals(2L * log.segmentSize, end);
            good = log.read();
            switch (reason) {
                case BAD_PAGE_HEADER -> Files.copy(log.file(1, log.start), log.file(1, end));
                case SHORT_SEGMENT -> Files.write(log.file(1, end), new byte[10]);
                default -> {}
            }
            softEnd(reason);
            newWalContinues();
        }
    }

    /** WAL-2. */
    @Test
    void aLengthBeyondWhatWalHoldsAllocatesNothing() {
        writeGood(3000);
        // A true header and a true first continuation; the other 900 MB never come.
        UnsafeBuffer header = new UnsafeBuffer(new byte[24]);
        header.putInt(0, 900 << 20);
        header.putLong(8, last);
        header.putByte(17, (byte) 10);
        log.patch(end, header.byteArray());
        int room = (int) (nextPage() - end);
        UnsafeBuffer page = new UnsafeBuffer(new byte[WalLog.PAGE]);
        WalPageHeader.init(page, 0, nextPage(), 1, log.segmentSize, WalLog.SYSTEM);
        WalPageHeader.setContinuation(page, 0, (900 << 20) - room);
        log.patch(nextPage(), page.byteArray());
        softEnd(Reason.BAD_PAGE_HEADER);
        assertEquals(nextPage() + WalLog.PAGE, log.missingContinuation);
        newWalContinues();
    }

    @Test
    void resourceManagersThatDoNotExistEndTheLog() {
        writeGood(3000);
        for (int rmid : new int[] {22, 100, 127}) {
            UnsafeBuffer bytes = new UnsafeBuffer(new byte[200]);
            WalLog.plain(50).encode(bytes, 0, last);
            bytes.putByte(17, (byte) rmid);
            log.patch(end, bytes.byteArray());
            softEnd(Reason.BAD_RESOURCE_MANAGER);
        }
        newWalContinues();
    }

    @Test
    void pagesOfAnotherSystemTimelineOrVersionEndTheLog() {
        writeGood(3000);
        byte[] header = log.bytes(log.segmentSize, 40);
        int[] offsets = {0, 2, 4, 8, 24, 32, 36};
        for (int offset : offsets) {
            byte[] damaged = header.clone();
            damaged[offset] ^= 0x10;
            log.patch(log.segmentSize, damaged);
            assertEquals(0, log.read().size());
            assertEquals(Reason.BAD_PAGE_HEADER, log.end.reason(), "offset " + offset);
        }
        log.patch(log.segmentSize, header);
        softEnd(Reason.ZERO_LENGTH);
    }

    @Test
    void noRecordBeginsInAPageHeaderOrUnaligned() {
        writeGood(3000);
        for (long lsn :
                new long[] {
                    log.segmentSize + 8,
                    log.segmentSize + 24,
                    log.start + 4,
                    log.segmentSize + WalLog.PAGE - 2
                }) {
            assertEquals(0, log.read(TimelineHistory.of(1), lsn).size());
            assertEquals(Reason.BAD_LENGTH, log.end.reason());
        }
    }

    /** A log whose next record would begin {@code left} bytes before a page's end. */
    private void writeGood(int left) {
        try (WalWriter writer = log.writer()) {
            writer.append(WalLog.plain(9000));
            end = WalLog.fillPageTo(writer, left);
            last = writer.lastRecord();
            writer.flush();
        }
        assertEquals(left, WalLog.PAGE - (end & WalLog.PAGE - 1));
        good = log.read();
        assertEquals(3, good.size());
    }

    private long nextPage() {
        return (end / WalLog.PAGE + 1) * WalLog.PAGE;
    }

    /** As a recycled segment has it: an earlier address. */
    private void olderPage(long lsn) {
        UnsafeBuffer page = new UnsafeBuffer(new byte[WalLog.PAGE]);
        page.setMemory(0, WalLog.PAGE, (byte) 7);
        WalPageHeader.init(page, 0, lsn - 16L * log.segmentSize, 1, log.segmentSize, WalLog.SYSTEM);
        log.patch(lsn, page.byteArray());
    }

    private void record(long lsn, WalRecordBuilder builder, long prev) {
        byte[] bytes = new byte[builder.encodedLength()];
        builder.encode(new UnsafeBuffer(bytes), 0, prev);
        log.patch(lsn, bytes);
    }

    private void softEnd(Reason reason) {
        try (WalReader reader = log.reader()) {
            reader.begin(log.start);
            int before = reader.assemblyCapacity();
            assertEquals(good, log.drain(reader));
            assertEquals(reason, log.end.reason(), log.end.toString());
            assertEquals(end, log.endOfLastRecord);
            assertEquals(last, log.lastRecord);
            assertEquals(before, reader.assemblyCapacity());
            // A standby waits and tries again.
            assertNull(reader.next());
            assertEquals(reason, reader.end().reason());
            assertEquals(end, reader.endOfLastRecord());
        }
    }

    /**
     * After a crash: right after the last good record, or over the continuation that never came.
     * Also without the latter, as on a new timeline.
     */
    private void newWalContinues() {
        for (NewWal means : NewWal.values()) {
            newWalContinues(true, means);
            newWalContinues(false, means);
        }
    }

    private void newWalContinues(boolean overwrites, NewWal means) {
        try (WalLog copy = log.copyOf()) {
            boolean isAborted = log.abortedRecord != 0 && overwrites;
            List<WalRecordBuilder> records = new ArrayList<>();
            if (isAborted) {
                records.add(WalLog.overwrite(log.abortedRecord));
            }
            records.add(WalLog.plain(60));
            records.add(WalLog.plain(20_000));
            long missing = isAborted ? log.missingContinuation : 0;
            long start = isAborted ? missing : end;
            means.write(copy, 1, start, last, missing, records);
            List<WalLog.Copy> all = copy.read();
            assertEquals(Reason.ZERO_LENGTH, copy.end.reason(), copy.end.toString());
            assertEquals(good, all.subList(0, good.size()));
            assertEquals(good.size() + records.size(), all.size());
            long first = all.get(good.size()).lsn();
            assertNotEquals(0, first & copy.segmentSize - 1);
            assertTrue(first == start || start % WalLog.PAGE == 0);
            assertEquals(20_000, all.getLast().data().capacity());
        }
    }
}
