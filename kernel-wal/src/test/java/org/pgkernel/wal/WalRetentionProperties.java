package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.util.Random;
import java.util.TreeSet;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.DisplayName;

/** What is kept, removed and recycled after checkpoints. Segments of 8 KiB. */
class WalRetentionProperties {
    private static final int SEGMENT = WalLog.PAGE;

    /** Bytes of WAL that fill one segment. */
    private static final int FILL = SEGMENT - WalPageHeader.LONG_SIZE;

    private final Random random = new Random();
    private final TreeSet<Long> expected = new TreeSet<>();

    /** A life of checkpoints, beside a model that counts segments. */
    @Property(tries = 60)
    void segmentsAreThoseThatTheSettingsAskFor(
            @ForAll long seed,
            @ForAll @IntRange(min = 0, max = 12) int min,
            @ForAll @IntRange(min = 2, max = 20) int max,
            @ForAll @IntRange(min = 0, max = 9) int keep,
            @ForAll boolean recycle)
            throws IOException {
        random.setSeed(seed);
        expected.clear();
        try (WalLog log = new WalLog(SEGMENT);
                WalInserter inserter = log.inserter(1 << 16)) {
            long[] needed = {Long.MAX_VALUE};
            WalRetention retention =
                    new WalRetention(
                            inserter,
                            new WalRetention.Settings(
                                    (long) min * SEGMENT,
                                    (long) Math.max(min, max) * SEGMENT,
                                    (long) keep * SEGMENT,
                                    recycle,
                                    0.5),
                            () -> needed[0]);
            double estimate = 0;
            long lastRedo = 0;
            long made = 1;
            for (int i = 0; i < 12; i++) {
                fill(inserter, random.nextInt(6));
                long redo = inserter.moveRedo();
                fill(inserter, random.nextInt(3));
                long current = inserter.insertLsn() / SEGMENT;
                if (random.nextInt(4) == 0) {
                    needed[0] =
                            random.nextBoolean()
                                    ? Long.MAX_VALUE
                                    : Math.max(SEGMENT, redo - random.nextInt(5 * SEGMENT));
                }
                double latest = redo - lastRedo;
                estimate = lastRedo == 0 ? 0 : Math.max(latest, 0.9 * estimate + 0.1 * latest);
                lastRedo = redo;
                for (; made <= (inserter.flushedLsn() - 1) / SEGMENT; made++) {
                    expected.add(made);
                }
                WalRetention.Removal removal = retention.removeOldSegments(redo);
                long first =
                        Math.min(
                                redo / SEGMENT,
                                Math.min(
                                        needed[0] / SEGMENT,
                                        keep == 0 ? Long.MAX_VALUE : Math.max(1, current - keep)));
                int old = expected.headSet(first).size();
                assertEquals(old, removal.removed() + removal.recycled(), "seed=" + seed);
                expected.headSet(first).clear();
                long ahead = (long) Math.ceil((redo + 1.5 * estimate * 1.1) / SEGMENT);
                ahead = Math.max(ahead, redo / SEGMENT + min - 1);
                ahead = Math.min(ahead, redo / SEGMENT + Math.max(min, max) - 1);
                for (long s = current + 1; recycle && s <= ahead && old > 0; s++) {
                    if (expected.add(s)) {
                        old--;
                    }
                }
                assertEquals(expected, present(log), "seed=" + seed + " checkpoint " + i);
            }
            log.read(TimelineHistory.of(1), lastRedo);
            assertTrue(log.endOfLastRecord >= inserter.flushedLsn());
        }
    }

    private void fill(WalInserter inserter, int segments) {
        for (int i = 0; i < segments; i++) {
            inserter.insert(WalLog.plain(random.nextInt(2 * FILL)));
        }
        inserter.flush(inserter.insert(WalLog.plain(random.nextInt(500))));
    }

    private static TreeSet<Long> present(WalLog log) throws IOException {
        TreeSet<Long> numbers = new TreeSet<>();
        try (var files = Files.list(log.directory)) {
            files.map(path -> WalSegmentName.parse(path.getFileName().toString(), SEGMENT))
                    .forEach(name -> numbers.add(name.segment()));
        }
        return numbers;
    }

    @Example
    @DisplayName("what was archived unfinished is removed with its segment, never recycled")
    void partialSegmentsAreRemoved() throws IOException {
        try (WalLog log = new WalLog(SEGMENT);
                WalInserter inserter = log.inserter(1 << 16)) {
            random.setSeed(1);
            fill(inserter, 20);
            String name = WalSegmentName.fileName(3, 2, SEGMENT) + ".partial";
            Files.write(log.directory.resolve(name), new byte[SEGMENT]);
            Files.write(log.directory.resolve("keep.partial"), new byte[SEGMENT]);
            new WalRetention(inserter, WalRetention.Settings.DEFAULT)
                    .removeOldSegments(inserter.moveRedo());
            assertTrue(Files.notExists(log.directory.resolve(name)));
            assertTrue(Files.exists(log.directory.resolve("keep.partial")));
        }
    }

    /** PostgreSQL 15 begins a checkpoint after 538 MB of WAL by default: 33 segments of 16 MiB. */
    @Example
    void checkpointDistanceLeavesRoomForTheNextCheckpointToFinish() {
        try (WalLog log = new WalLog(1 << 24);
                WalInserter inserter = log.inserter(1 << 16)) {
            assertEquals(
                    33L << 24,
                    new WalRetention(inserter, WalRetention.Settings.DEFAULT).checkpointDistance());
            assertEquals(
                    1L << 24,
                    new WalRetention(inserter, new WalRetention.Settings(0, 1 << 20, 0, true, 0.9))
                            .checkpointDistance());
        }
    }
}
