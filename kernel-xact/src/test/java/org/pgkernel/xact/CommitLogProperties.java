package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.Stream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Label;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.LongRange;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.disk.PosixDisk;

class CommitLogProperties {
    private static final int[] STARTS = {
        3,
        CommitLog.XACTS_PER_PAGE - 50,
        1 << 31,
        (1 << 31) - 60,
        -60,
        -CommitLog.XACTS_PER_PAGE * 2
    };

    @Property(tries = 60)
    @Label(
            "C23: the log tells what a plain map tells, across pages and the wrap, through little memory and a restart")
    void logEqualsModel(@ForAll @IntRange(min = 0, max = 5) int where, @ForAll long seed)
            throws IOException {
        Path directory = Files.createTempDirectory("clog");
        try {
            Files.createDirectory(directory.resolve("pg_xact"));
            Random random = new Random(seed);
            CommitLog log = new CommitLog(new PosixDisk(), directory.toString(), 2);
            Map<Integer, Integer> model = new HashMap<>();
            List<Integer> used = new ArrayList<>();
            Set<Integer> pages = new HashSet<>();
            UnsafeBuffer subxids = new UnsafeBuffer(new byte[4 * 40]);
            int next = STARTS[where];
            log.startup(next);
            for (int i = 0; i < 60; i++) {
                int xid = next;
                used.add(xid);
                int count = random.nextInt(4) == 0 ? random.nextInt(40) : 0;
                for (int s = 0; s < count; s++) {
                    int step = random.nextInt(20) == 0 ? CommitLog.XACTS_PER_PAGE : 1;
                    for (int n = 0; n < step; n += Math.max(1, step / 2)) {
                        next = skip(next, Math.max(1, step / 2));
                    }
                    subxids.putInt(s * 4, next);
                    used.add(next);
                }
                next = skip(next, 1 + random.nextInt(3));
                int status =
                        switch (random.nextInt(3)) {
                            case 0 -> CommitLog.COMMITTED;
                            case 1 -> CommitLog.ABORTED;
                            default -> CommitLog.IN_PROGRESS;
                        };
                if (status != CommitLog.IN_PROGRESS) {
                    extend(log, pages, xid);
                    for (int s = 0; s < count; s++) {
                        extend(log, pages, subxids.getInt(s * 4));
                    }
                    log.setTreeStatus(xid, subxids, 0, count, status);
                    model.put(xid, status);
                    for (int s = 0; s < count; s++) {
                        model.put(subxids.getInt(s * 4), status);
                    }
                }
                if (random.nextInt(10) == 0) {
                    log.slru().checkpoint();
                }
            }
            used.removeIf(xid -> !pages.contains(CommitLog.pageOf(xid)));
            expect(used, model, log);
            log.slru().checkpoint();
            expect(used, model, new CommitLog(new PosixDisk(), directory.toString(), 3));
        } finally {
            delete(directory);
        }
    }

    /** What the record that precedes the first use of a page does. */
    private static void extend(CommitLog log, Set<Integer> pages, int xid) {
        if (pages.add(CommitLog.pageOf(xid))) {
            log.zeroPageNow(CommitLog.pageOf(xid));
        }
    }

    private static int skip(int xid, int by) {
        int next = xid + by;
        return TransactionId.isNormal(next) ? next : TransactionId.FIRST_NORMAL;
    }

    private static void expect(List<Integer> used, Map<Integer, Integer> model, CommitLog log) {
        for (int xid : used) {
            assertEquals(
                    model.getOrDefault(xid, CommitLog.IN_PROGRESS),
                    log.status(xid),
                    () -> "xid " + Integer.toUnsignedString(xid));
        }
    }

    @Property
    @Label(
            "C23: no segment is removed that holds the status of an xid from the oldest needed to the newest that may be assigned")
    void truncationKeepsEveryNeededSegment(
            @ForAll int oldest,
            @ForAll @LongRange(min = 0, max = 0x7FFFFFFFL - 1) long span,
            @ForAll @LongRange(min = 0, max = 0x7FFFFFFFL) long within) {
        int oldestXid = TransactionId.isNormal(oldest) ? oldest : TransactionId.FIRST_NORMAL;
        int cutoff = CommitLog.pageOf(oldestXid);
        int needed = (int) (Integer.toUnsignedLong(oldestXid) + within % (span + 1));
        Slru slru = new CommitLog(new PosixDisk(), "unused", 2).slru();
        assertFalse(
                slru.mayDelete(CommitLog.pageOf(needed) / Slru.PAGES_PER_SEGMENT, cutoff),
                () ->
                        "oldest "
                                + Integer.toUnsignedString(oldestXid)
                                + " needed "
                                + Integer.toUnsignedString(needed));
    }

    @Property
    @Label(
            "C23: a segment that lies wholly before the oldest needed xid, and not by half the number space, is removed")
    void truncationRemovesWhatIsNotNeeded(
            @ForAll int oldest, @ForAll @LongRange(min = 2, max = 2000) long segmentsBefore) {
        int cutoff = CommitLog.pageOf(oldest);
        long pages = CommitLog.pageOf(-1) + 1L;
        long page = Math.floorMod(cutoff - segmentsBefore * Slru.PAGES_PER_SEGMENT, pages);
        Slru slru = new CommitLog(new PosixDisk(), "unused", 2).slru();
        assertTrue(slru.mayDelete((int) page / Slru.PAGES_PER_SEGMENT, cutoff));
    }

    @Property(tries = 100)
    void trimmingZeroesExactlyTheXidsThatWereNotAssigned(
            @ForAll @IntRange(min = 1, max = CommitLog.XACTS_PER_PAGE - 1) int index)
            throws IOException {
        Path directory = Files.createTempDirectory("clog");
        try {
            Files.createDirectory(directory.resolve("pg_xact"));
            byte[] page = new byte[8192];
            java.util.Arrays.fill(page, (byte) 0x6D);
            Files.write(directory.resolve("pg_xact/0000"), page);
            CommitLog log = new CommitLog(new PosixDisk(), directory.toString(), 2);
            log.trim(index);
            log.slru().checkpoint();
            byte[] trimmed = Files.readAllBytes(directory.resolve("pg_xact/0000"));
            assertEquals(8192, trimmed.length);
            for (int xid = 0; xid < CommitLog.XACTS_PER_PAGE; xid++) {
                int before = page[xid / 4] >> xid % 4 * 2 & 3;
                int after = trimmed[xid / 4] >> xid % 4 * 2 & 3;
                assertEquals(xid < index ? before : 0, after);
            }
        } finally {
            delete(directory);
        }
    }

    static void delete(Path directory) throws IOException {
        try (Stream<Path> paths = Files.walk(directory)) {
            for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }
}
