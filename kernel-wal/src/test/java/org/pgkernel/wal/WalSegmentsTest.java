package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class WalSegmentsTest {
    private final WalLog log = new WalLog(1 << 16);

    @AfterEach
    void removeLog() {
        log.close();
    }

    @Test
    @DisplayName("C24: old segments become future ones, and their old records end no log wrongly")
    void oldSegmentsAreRecycledAndTheRestRemoved() throws IOException {
        try (WalInserter inserter = log.inserter(1 << 16)) {
            long keep = 0;
            long from = 0;
            for (int i = 0; i < 70; i++) {
                WalRecordBuilder record = WalLog.plain(5_000);
                inserter.insert(record);
                if (i == 60) {
                    from = record.startLsn();
                    keep = WalSegmentName.segmentOf(from, log.segmentSize);
                }
            }
            inserter.flush(inserter.insertLsn());
            long last = WalSegmentName.segmentOf(inserter.insertLsn(), log.segmentSize);
            Files.createFile(log.directory.resolve("00000001.history"));
            int removed = inserter.segments().removeBefore(from, inserter.insertLsn(), 2);
            assertEquals(keep - 1, removed);
            for (long segment = 1; segment <= last + 4; segment++) {
                assertEquals(
                        segment >= keep && segment <= last + 2,
                        Files.exists(log.file(1, segment * log.segmentSize)),
                        "segment " + segment);
            }
            assertTrue(Files.exists(log.directory.resolve("00000001.history")));
            assertEquals(10, log.read(TimelineHistory.of(1), from).size());
            for (int i = 0; i < 40; i++) {
                inserter.insert(WalLog.plain(5_000));
                if (i % 7 == 0) {
                    inserter.flush(inserter.insertLsn());
                    assertEquals(11 + i, log.read(TimelineHistory.of(1), from).size());
                }
            }
        }
    }

    @Test
    @DisplayName(
            "R19: segments of an older timeline are removed and never come back under its name")
    void segmentsOfAnOlderTimelineBecomeOurs() throws IOException {
        long current = 9L * log.segmentSize;
        for (int segment = 2; segment < 9; segment++) {
            Files.write(
                    log.file(segment < 6 ? 7 : 1, (long) segment * log.segmentSize),
                    new byte[segment == 3 ? 100 : log.segmentSize]);
        }
        try (WalInserter inserter =
                log.inserter(current + 40, log.start, 1 << 16, new WalInserter.Parts())) {
            inserter.flush(inserter.insert(WalLog.plain(10)));
            assertEquals(
                    6, inserter.segments().removeBefore(8L * log.segmentSize, current + 100, 3));
            List<String> expected =
                    List.of(8L, 9L, 10L, 11L, 12L).stream()
                            .map(s -> WalSegmentName.fileName(1, s, log.segmentSize))
                            .toList();
            assertEquals(expected, names());
            for (long segment = 8; segment <= 12; segment++) {
                assertEquals(log.segmentSize, Files.size(log.file(1, segment * log.segmentSize)));
            }
            assertEquals(0, inserter.segments().removeBefore(current, current + 100, 0) - 1);
            assertFalse(Files.exists(log.file(1, 8L * log.segmentSize)));
        }
    }

    private List<String> names() throws IOException {
        try (var files = Files.list(log.directory)) {
            return files.map(path -> path.getFileName().toString()).sorted().toList();
        }
    }
}
