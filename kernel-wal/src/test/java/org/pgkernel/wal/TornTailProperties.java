package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/**
 * C24, C25 1, the writer's half: a crash leaves the log cut at any byte, with anything behind the
 * cut. Whoever goes on there keeps all that can be read, and all that he adds is read after it; so
 * again after the next crash.
 */
class TornTailProperties {
    private static final int SECTOR = 512;

    /** What a crash leaves behind the cut. */
    enum Behind {
        /** Nothing: later segments are missing, too. */
        NOTHING,
        ZEROS,
        /** What the file held in an earlier life, under lower page addresses. */
        OLDER_PAGES,
        /** Each sector by itself: as written, zeros, or older. */
        SECTORS,
        NOISE
    }

    @Property(tries = 400)
    void newWalIsReadBehindEverythingThatSurvivedTheCrash(
            @ForAll long seed,
            @ForAll @IntRange(min = 13, max = 17) int segmentBits,
            @ForAll Behind behind,
            @ForAll NewWal means)
            throws IOException {
        Random random = new Random(seed);
        try (WalLog log = new WalLog(1 << segmentBits)) {
            List<WalRecordBuilder> records = records(random, 20);
            means.write(log, 1, log.start, 0, 0, records);
            List<WalLog.Copy> before = log.read();
            assertEquals(records.size(), before.size(), () -> log.end + " seed=" + seed);
            for (int life = 0; life < 3; life++) {
                long from = before.getFirst().end();
                long cut = from + (long) ((log.endOfLastRecord - from) * random.nextDouble());
                damage(log, cut, log.endOfLastRecord, behind, random);
                List<WalLog.Copy> survived = log.read();
                assertPrefix(survived, before, cut, seed);
                List<WalRecordBuilder> more = records(random, 8);
                int added = means.goOn(log, more);
                List<WalLog.Copy> after = log.read();
                assertEquals(survived, after.subList(0, survived.size()), "seed=" + seed);
                assertEquals(
                        survived.size() + added, after.size(), () -> log.end + " seed=" + seed);
                for (int i = 0; i < more.size(); i++) {
                    WalLog.Copy copy = after.get(after.size() - more.size() + i);
                    assertEquals(more.get(i).encodedLength(), copyLength(copy), "seed=" + seed);
                }
                assertZerosBehind(log, seed);
                before = after;
            }
        }
    }

    private static List<WalRecordBuilder> records(Random random, int most) {
        List<WalRecordBuilder> records = new ArrayList<>();
        for (int i = 1 + random.nextInt(most); i >= 0; i--) {
            int length =
                    switch (random.nextInt(4)) {
                        case 0 -> random.nextInt(30_000);
                        case 1 -> random.nextInt(5_000);
                        default -> random.nextInt(300);
                    };
            records.add(WalLog.plain(Math.max(1, length)));
        }
        return records;
    }

    private static int copyLength(WalLog.Copy copy) {
        int data = copy.data().limit();
        return 24 + data + (data > 255 ? 5 : 2);
    }

    /** What is read is what was written, and nothing that ended before the cut is missing. */
    private static void assertPrefix(
            List<WalLog.Copy> survived, List<WalLog.Copy> before, long cut, long seed) {
        assertTrue(survived.size() <= before.size(), "seed=" + seed);
        assertEquals(before.subList(0, survived.size()), survived, "seed=" + seed);
        long whole = before.stream().filter(copy -> copy.end() <= cut).count();
        assertTrue(survived.size() >= whole, survived.size() + " of " + whole + " seed=" + seed);
    }

    /** WAL-9. */
    private static void assertZerosBehind(WalLog log, long seed) {
        long end = log.endOfLastRecord;
        int rest = WalLog.PAGE - (int) (end & WalLog.PAGE - 1);
        if (rest == WalLog.PAGE && Files.notExists(log.file(1, end))) {
            return;
        }
        for (byte b : log.bytes(end, rest)) {
            assertEquals(0, b, () -> "behind " + end + " seed=" + seed);
        }
    }

    private static void damage(WalLog log, long cut, long end, Behind behind, Random random)
            throws IOException {
        int segment = log.segmentSize;
        for (long at = cut; at < end; ) {
            long next = Math.min(end, (at / segment + 1) * segment);
            if (behind == Behind.NOTHING && at % segment == 0) {
                Files.delete(log.file(1, at));
            } else {
                overwrite(log, at, (int) (next - at), behind, random);
            }
            at = next;
        }
    }

    private static void overwrite(WalLog log, long from, int length, Behind behind, Random random)
            throws IOException {
        byte[] old = new byte[length];
        if (from - log.segmentSize >= log.segmentSize) {
            old = log.bytes(from - log.segmentSize, length);
        }
        byte[] bytes = log.bytes(from, length);
        for (int i = 0; i < length; ) {
            int sector = Math.min(length, i + SECTOR - (int) ((from + i) % SECTOR)) - i;
            int kind =
                    switch (behind) {
                        case NOTHING, ZEROS -> 0;
                        case OLDER_PAGES -> 1;
                        case SECTORS -> random.nextInt(3);
                        case NOISE -> 3;
                    };
            for (int k = i; k < i + sector; k++) {
                bytes[k] =
                        switch (kind) {
                            case 0 -> 0;
                            case 1 -> old[k];
                            case 2 -> bytes[k];
                            default -> (byte) random.nextInt(256);
                        };
            }
            i += sector;
        }
        try (RandomAccessFile file = new RandomAccessFile(log.file(1, from).toFile(), "rw")) {
            file.seek(from % log.segmentSize);
            file.write(bytes);
        }
    }
}
