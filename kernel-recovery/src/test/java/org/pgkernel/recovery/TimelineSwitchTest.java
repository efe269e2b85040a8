package org.pgkernel.recovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.disk.PosixDisk;

class TimelineSwitchTest {
    private static final int SEGMENT = 16 << 20;

    @TempDir Path dir;

    @Test
    @DisplayName("R19: no segment of an older timeline past the switch keeps a valid name")
    void olderTimelinesLoseWhatLiesPastTheSwitch() throws IOException {
        Files.createDirectories(dir.resolve("archive_status"));
        Files.createFile(dir.resolve("archive_status/000000010000000000000006.ready"));
        for (String name :
                List.of(
                        "000000010000000000000003",
                        "000000010000000000000004",
                        "000000010000000000000005",
                        "000000010000000000000006",
                        "000000010000000100000000",
                        "000000020000000000000004",
                        "000000020000000000000005",
                        "000000030000000000000005",
                        "00000002.history",
                        "000000010000000000000005.partial",
                        "xlogtemp.12")) {
            Files.createFile(dir.resolve(name));
        }
        int removed =
                TimelineSwitch.removeForeignSegments(
                        new PosixDisk(), dir.toString(), 4L * SEGMENT + 1000, 2, SEGMENT);
        assertEquals(2, removed);
        TreeSet<String> left = new TreeSet<>();
        try (Stream<Path> files = Files.list(dir)) {
            files.forEach(p -> left.add(p.getFileName().toString()));
        }
        assertFalse(left.contains("000000010000000000000005"));
        assertFalse(left.contains("000000010000000100000000"));
        assertTrue(
                left.containsAll(
                        List.of(
                                "000000010000000000000003",
                                "000000010000000000000004",
                                "000000010000000000000006",
                                "000000020000000000000005",
                                "000000030000000000000005",
                                "00000002.history",
                                "000000010000000000000005.partial")),
                left.toString());
    }

    @Test
    void aSwitchAtASegmentBorderKeepsTheSegmentBeforeIt() throws IOException {
        Files.createFile(dir.resolve("000000010000000000000003"));
        Files.createFile(dir.resolve("000000010000000000000004"));
        assertEquals(
                1,
                TimelineSwitch.removeForeignSegments(
                        new PosixDisk(), dir.toString(), 4L * SEGMENT, 2, SEGMENT));
        assertTrue(Files.exists(dir.resolve("000000010000000000000003")));
    }
}
