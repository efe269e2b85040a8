package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.smgr.SmgrRelation;

/** The background writer, round by round, with a clock that a test moves. */
@Timeout(60)
class BackgroundWriterTest {
    private static final int BUFFERS = 400;
    private static final long DELAY = BackgroundWriterOptions.DEFAULT.delayNanos();

    /**
     * A whole walk takes two minutes, 600 rounds of 200 ms, in which a pool as small as this would
     * get no buffer a round: here it is four rounds.
     */
    private static final BackgroundWriterOptions SLOW =
            new BackgroundWriterOptions(1000, 2.0, TimeUnit.SECONDS.toNanos(30), 0);

    @TempDir Path directory;

    PoolFixture f;
    SmgrRelation r;
    final AtomicLong now = new AtomicLong(7);

    @BeforeEach
    void open() {
        f = new PoolFixture(directory, false).pool(BUFFERS, true, DropStrategy.FULL_SCAN);
        f.pool.hintImageLog(new RecordingHintLog());
        r = f.create(1, ForkNumber.MAIN, 3 * BUFFERS);
        f.pool.flushAll();
    }

    @AfterEach
    void close() {
        f.disk.beforeWrite = (path, offset) -> {};
        assertEquals(0, f.pool.pinnedBuffers());
        PoolInspection.check(f.pool);
        f.close();
    }

    private BackgroundWriter writer() {
        return writer(BackgroundWriterOptions.DEFAULT);
    }

    private BackgroundWriter writer(BackgroundWriterOptions options) {
        return f.pool.backgroundWriter(options, now::get);
    }

    /** One round, now due. */
    private int round(BackgroundWriter writer) {
        now.addAndGet(Math.max(0, writer.nanosUntilDue()));
        return writer.doWork();
    }

    /** Changes pages until every buffer holds a dirty page. */
    private void dirtyAll() {
        for (int round = 0; round < 7; round++) {
            for (int i = 0; i < BUFFERS; i++) {
                f.change(r, ForkNumber.MAIN, i, round);
            }
        }
    }

    /** Takes the uses away, as the hand does when it passes. */
    private void wearOut() {
        for (int buffer = 0; buffer < BUFFERS; buffer++) {
            int state = f.pool.descriptors.lockHeader(buffer);
            f.pool.descriptors.unlockHeader(buffer, state & ~BufferState.USAGECOUNT_MASK);
        }
    }

    private int dirty() {
        return (int)
                PoolInspection.descriptors(f.pool).stream()
                        .filter(PoolInspection.Descriptor::dirty)
                        .count();
    }

    @Test
    void aRoundIsMadeOnceADelay() {
        dirtyAll();
        wearOut();
        f.pool.release(f.pool.read(r, ForkNumber.MAIN, BUFFERS, ReadMode.NORMAL));
        BackgroundWriter writer = writer();
        for (int i = 1; i < 30; i++) {
            f.pool.release(f.pool.read(r, ForkNumber.MAIN, BUFFERS + i, ReadMode.NORMAL));
        }
        assertTrue(writer.doWork() > 0);
        long written = writer.written();
        now.addAndGet(DELAY - 1);
        assertEquals(0, writer.doWork());
        assertEquals(written, writer.written());
        assertEquals(1, writer.nanosUntilDue());
    }

    @Test
    void itKeepsTwiceWhatWasWantedLatelyReadyAheadOfTheHand() {
        dirtyAll();
        wearOut();
        BackgroundWriter writer = writer();
        for (int i = 0; i < 30; i++) {
            f.pool.release(f.pool.read(r, ForkNumber.MAIN, BUFFERS + i, ReadMode.NORMAL));
        }
        assertEquals(60, round(writer));
        int hand = f.pool.replacement.syncStart().buffer();
        for (int i = 0; i < 60; i++) {
            int state = f.pool.descriptors.state((hand + i) % BUFFERS);
            assertEquals(0, state & BufferState.DIRTY, i + " buffers ahead of the hand");
        }
        List<String> writes = new ArrayList<>();
        f.disk.beforeWrite = (path, offset) -> writes.add(path);
        for (int i = 0; i < 60; i++) {
            f.pool.release(f.pool.read(r, ForkNumber.MAIN, BUFFERS + 30 + i, ReadMode.NORMAL));
        }
        assertEquals(List.of(), writes, "who needs a buffer finds it clean");
    }

    @Test
    void pagesInUseOrUsedLatelyAreLeftAlone() {
        dirtyAll();
        wearOut();
        int hand = f.pool.replacement.syncStart().buffer();
        List<Integer> pinned = new ArrayList<>();
        for (int i = 0; i < 40; i += 2) {
            int block = f.pool.block((hand + i) % BUFFERS);
            int buffer = f.pool.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL);
            if (i % 4 == 0) {
                pinned.add(buffer);
            } else {
                f.pool.release(buffer); // has a use now
            }
        }
        BackgroundWriter writer = writer(SLOW);
        for (int i = 0; i < 20; i++) {
            round(writer);
        }
        for (int i = 0; i < 40; i++) {
            int state = f.pool.descriptors.state((hand + i) % BUFFERS);
            assertEquals(i % 2 == 0, (state & BufferState.DIRTY) != 0, "buffer " + i);
        }
        pinned.forEach(f.pool::release);
    }

    @Test
    void aRoundWritesNoMoreThanItsLimitAndCountsThat() {
        dirtyAll();
        wearOut();
        BackgroundWriter writer = writer(new BackgroundWriterOptions(10, 2.0, DELAY, 0));
        for (int i = 0; i < 30; i++) {
            f.pool.release(f.pool.read(r, ForkNumber.MAIN, BUFFERS + i, ReadMode.NORMAL));
        }
        assertEquals(10, round(writer));
        assertEquals(1, writer.roundsCut());
        BackgroundWriter off = writer(new BackgroundWriterOptions(0, 2.0, DELAY, 0));
        assertEquals(0, round(off));
        assertThrows(RefusedException.class, () -> new BackgroundWriterOptions(-1, 2.0, DELAY, 0));
    }

    @Test
    void anIdlePoolIsCleanedInTwoMinutesThenTheWriterRestsUntilTheNextAllocation() {
        dirtyAll();
        wearOut();
        long delay = SLOW.delayNanos();
        BackgroundWriter writer = writer(SLOW);
        int rounds = 0;
        while (!writer.isHibernating()) {
            round(writer);
            rounds++;
            assertTrue(rounds < 100, "never rests");
        }
        assertEquals(0, dirty(), "all is clean");
        assertTrue(rounds >= 4, "in " + rounds + " rounds");
        long due = writer.nanosUntilDue();
        assertEquals(51 * delay, due);
        assertEquals(0, writer.doWork());
        f.change(r, ForkNumber.MAIN, 2 * BUFFERS, 9);
        assertEquals(due, writer.nanosUntilDue());
        writer.doWork();
        assertFalse(writer.isHibernating(), "somebody wanted a buffer");
        assertEquals(delay, writer.nanosUntilDue());
    }

    @Test
    void aRestingThreadIsWokenByAnAllocation() throws Exception {
        BackgroundWriter writer = writer(SLOW);
        while (!writer.isHibernating()) {
            round(writer);
        }
        CountDownLatch woken = new CountDownLatch(1);
        Thread thread =
                new Thread(
                        () -> {
                            while (writer.isHibernating()) {
                                writer.rest();
                                writer.doWork();
                            }
                            woken.countDown();
                        });
        thread.start();
        f.pool.release(f.pool.read(r, ForkNumber.MAIN, 0, ReadMode.NORMAL)); // not in the pool
        assertTrue(woken.await(20, TimeUnit.SECONDS), "slept through an allocation");
        thread.join();
    }

    /** Only hints may change a page whose shared lock the writer holds. */
    private void hint(int block, int version) {
        int b = f.pool.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL);
        f.pool.lockShared(b);
        f.page(b).putInt(4104, version);
        f.pool.markDirtyHint(b, true);
        f.pool.unlock(b);
        f.pool.release(b);
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    @DisplayName("C32: a page that changes while the background writer writes it stays dirty")
    void aChangeDuringTheWriteIsNotLost() {
        dirtyAll();
        wearOut();
        int hand = f.pool.replacement.syncStart().buffer();
        int block = f.pool.block(hand);
        BackgroundWriter writer = writer(new BackgroundWriterOptions(1, 2.0, DELAY, 0));
        f.pool.release(f.pool.read(r, ForkNumber.MAIN, BUFFERS, ReadMode.NORMAL));
        hand = f.pool.replacement.syncStart().buffer();
        int victim = f.pool.block(hand);
        assertNotEquals(block, victim);
        f.disk.beforeWrite =
                (path, offset) -> {
                    f.disk.beforeWrite = (p, o) -> {};
                    Thread other = new Thread(() -> hint(victim, 77));
                    other.start();
                    join(other);
                };
        assertEquals(1, round(writer));
        assertNotEquals(77, f.versionOnDisk(r, ForkNumber.MAIN, victim));
        assertTrue(
                PoolInspection.descriptors(f.pool).stream()
                        .anyMatch(d -> d.block() == victim && d.dirty()));
        f.evictAll(f.create(2, ForkNumber.MAIN, BUFFERS));
        assertEquals(77, f.readVersion(r, ForkNumber.MAIN, victim));
    }

    @Test
    void aFailedWriteLeavesThePageDirtyAndTheNextRoundTriesItAgain() {
        dirtyAll();
        wearOut();
        BackgroundWriter writer = writer();
        f.pool.release(f.pool.read(r, ForkNumber.MAIN, BUFFERS, ReadMode.NORMAL));
        int before = dirty();
        f.disk.beforeWrite =
                (path, offset) -> {
                    throw new DiskException("planted file=" + path, DiskException.EIO);
                };
        DiskException e = assertThrows(DiskException.class, () -> round(writer));
        assertTrue(e.getMessage().contains("fork=main block="), e.getMessage());
        assertEquals(before, dirty());
        assertEquals(0, writer.doWork(), "it does not try at once");
        f.disk.beforeWrite = (path, offset) -> {};
        f.pool.release(f.pool.read(r, ForkNumber.MAIN, BUFFERS + 1, ReadMode.NORMAL));
        assertTrue(round(writer) > 0);
        assertTrue(
                PoolInspection.descriptors(f.pool).stream()
                        .noneMatch(PoolInspection.Descriptor::ioError));
    }

    @Test
    void pagesAreHintedAtAcrossRounds() {
        dirtyAll();
        wearOut();
        int[] hints = {0};
        f.disk.onWriteback = (path, offset, length) -> hints[0]++;
        BackgroundWriter writer = writer(new BackgroundWriterOptions(10, 2.0, DELAY, 15));
        for (int i = 0; i < 30; i++) {
            f.pool.release(f.pool.read(r, ForkNumber.MAIN, BUFFERS + i, ReadMode.NORMAL));
        }
        round(writer);
        assertEquals(0, hints[0]);
        round(writer);
        assertTrue(hints[0] > 0, "15 pages were written");
    }
}
