package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.io.RandomAccessFile;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.smgr.SmgrRelation;

@Timeout(60)
class EvictionTest {
    @TempDir Path directory;

    LookupStyle lookupStyle() {
        return LookupStyle.OPTIMISTIC;
    }

    PoolFixture f;

    PoolFixture fixture() {
        return new PoolFixture(directory, false);
    }

    @BeforeEach
    void open() {
        f = fixture().lookupStyle(lookupStyle()).pool(16, true, DropStrategy.FULL_SCAN);
    }

    @AfterEach
    void close() {
        try {
            assertEquals(0, f.pool.pinnedBuffers(), "pins left");
            PoolInspection.check(f.pool);
        } finally {
            f.close();
        }
    }

    @Test
    void aPageUsedOftenOutlivesPagesUsedOnce() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 100);
        int hot = -1;
        for (int i = 0; i < 20; i++) {
            hot = f.pool.read(r, ForkNumber.MAIN, 0, ReadMode.NORMAL);
            f.pool.release(hot);
        }
        assertEquals(5, BufferState.usageCount(f.pool.descriptors.state(hot)));
        for (int i = 1; i < 40; i++) {
            f.pool.release(f.pool.read(r, ForkNumber.MAIN, i, ReadMode.NORMAL));
        }
        assertTrue(
                f.pool.allocator.probe(PoolFixture.SPC, PoolFixture.DB, 1, 0, 0) >= 0,
                "the hot page was evicted");
        for (int i = 1; i < 100; i++) {
            f.pool.release(f.pool.read(r, ForkNumber.MAIN, i, ReadMode.NORMAL));
        }
        assertEquals(
                -1,
                f.pool.allocator.probe(PoolFixture.SPC, PoolFixture.DB, 1, 0, 0),
                "the cold page stayed");
    }

    @Test
    void buffersFreedByADropAreUsedBeforeTheClockHandMoves() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 16);
        SmgrRelation s = f.create(2, ForkNumber.MAIN, 4);
        List<Integer> freed = new ArrayList<>();
        for (PoolInspection.Descriptor d : PoolInspection.descriptors(f.pool)) {
            if (d.relation().relNumber() == 2) {
                freed.add(d.buffer());
            }
        }
        f.pool.dropRelations(new SmgrRelation[] {s}, 1);
        List<Integer> used = new ArrayList<>();
        for (int i = 0; i < 16 && used.size() < freed.size(); i++) {
            if (f.pool.allocator.probe(PoolFixture.SPC, PoolFixture.DB, 1, 0, i) < 0) {
                int b = f.pool.read(r, ForkNumber.MAIN, i, ReadMode.NORMAL);
                used.add(b);
                f.pool.release(b);
            }
        }
        assertEquals(freed.stream().sorted().toList(), used.stream().sorted().toList());
    }

    @Test
    @DisplayName(
            "C33: with every buffer pinned the caller is told so promptly; after one unpin the pool works again")
    void allPinned() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
        int[] pinned = new int[16];
        for (int i = 0; i < 16; i++) {
            pinned[i] = f.pool.read(r, ForkNumber.MAIN, i, ReadMode.NORMAL);
        }
        for (int i = 0; i < 3; i++) {
            NoFreeBufferException e =
                    assertThrows(
                            NoFreeBufferException.class,
                            () -> f.pool.read(r, ForkNumber.MAIN, 20, ReadMode.NORMAL));
            assertTrue(e.mayRetry());
            assertThrows(
                    NoFreeBufferException.class, () -> f.pool.extend(r, ForkNumber.MAIN, true));
        }
        assertEquals(40, r.nblocks(ForkNumber.MAIN));
        assertEquals(
                0, f.readVersion(r, ForkNumber.MAIN, 3), "pages in the pool can still be read");
        f.pool.release(pinned[7]);
        assertEquals(0, f.readVersion(r, ForkNumber.MAIN, 20));
        for (int i = 0; i < 16; i++) {
            if (i != 7) {
                f.pool.release(pinned[i]);
            }
        }
    }

    @Test
    @DisplayName(
            "C33: a dirty victim that is pinned and changed while it is written is given up, and its change is kept")
    void aVictimThatIsUsedAgainIsGivenUp() throws Exception {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
        f.evictAll(r);
        int[] pinned = new int[15];
        for (int i = 0; i < 15; i++) {
            pinned[i] = f.pool.read(r, ForkNumber.MAIN, i, ReadMode.NORMAL);
        }
        f.change(r, ForkNumber.MAIN, 20, 1); // the only possible victim, dirty
        int victim = f.pool.allocator.probe(PoolFixture.SPC, PoolFixture.DB, 1, 0, 20);
        CountDownLatch writing = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        f.disk.beforeWrite =
                (path, offset) -> {
                    writing.countDown();
                    ReadAndExtendTest.await(goOn);
                };
        AtomicReference<Throwable> outcome = new AtomicReference<>();
        Thread reader =
                new Thread(
                        () -> {
                            try {
                                f.pool.release(
                                        f.pool.read(r, ForkNumber.MAIN, 21, ReadMode.NORMAL));
                            } catch (Throwable t) {
                                outcome.set(t);
                            }
                        });
        reader.start();
        ReadAndExtendTest.await(writing);
        int again = f.pool.read(r, ForkNumber.MAIN, 20, ReadMode.NORMAL);
        assertEquals(victim, again, "the victim is still the page's buffer");
        goOn.countDown();
        f.pool.lockExclusive(again); // waits for the write
        f.page(again).putInt(4104, 2);
        f.pool.markDirty(again);
        f.pool.unlock(again);
        reader.join();
        // Everything was pinned, or the reader was faster than our change: never may it have taken
        // our page away.
        assertTrue(
                outcome.get() instanceof NoFreeBufferException, () -> "outcome " + outcome.get());
        assertEquals(2, f.version(again));
        f.pool.release(again);
        for (int b : pinned) {
            f.pool.release(b);
        }
        f.evictAll(r);
        assertEquals(2, f.readVersion(r, ForkNumber.MAIN, 20));
    }

    @Test
    void aVictimThatCannotBeWrittenIsAnErrorAndStaysDirty() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
        f.evictAll(r);
        for (int i = 0; i < 16; i++) {
            f.change(r, ForkNumber.MAIN, i, 3);
        }
        f.disk.beforeWrite =
                (path, offset) -> {
                    throw new DiskException("planted file=" + path, DiskException.EIO);
                };
        for (int i = 0; i < 50; i++) {
            assertThrows(
                    DiskException.class,
                    () -> f.pool.read(r, ForkNumber.MAIN, 30, ReadMode.NORMAL));
        }
        f.disk.beforeWrite = (path, offset) -> {};
        assertEquals(16, f.pool.flushAll());
        for (int i = 0; i < 16; i++) {
            assertEquals(3, f.versionOnDisk(r, ForkNumber.MAIN, i));
        }
    }

    @Test
    void aLockedVictimIsPassedOver() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
        f.evictAll(r);
        for (int i = 0; i < 16; i++) {
            f.change(r, ForkNumber.MAIN, i, 3);
        }
        int locked = f.pool.read(r, ForkNumber.MAIN, 4, ReadMode.NORMAL);
        f.pool.lockExclusive(locked);
        for (int i = 16; i < 40; i++) {
            assertEquals(0, f.readVersion(r, ForkNumber.MAIN, i));
        }
        assertEquals(4, f.pool.block(locked));
        f.pool.unlock(locked);
        f.pool.release(locked);
    }

    @Test
    @DisplayName(
            "C33: replacements whose old and new blocks lie in crossed partitions do not deadlock")
    void crossedPartitionsDoNotDeadlock() throws Exception {
        f.close();
        f =
                fixture()
                        .lookupStyle(lookupStyle())
                        .partitions(4)
                        .pool(16, true, DropStrategy.FULL_SCAN);
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 1);
        try (RandomAccessFile file =
                new RandomAccessFile(f.file(r, ForkNumber.MAIN).toFile(), "rw")) {
            file.setLength(20_000L * Page.SIZE); // sparse: zero pages
        }
        r.forgetSizes();
        // Blocks of two partitions only: half of the replacements lock both, in either direction.
        List<Integer> blocks = new ArrayList<>();
        boolean[] seen = new boolean[4];
        for (int i = 1; i < 20_000; i++) {
            int partition =
                    PoolInspection.partitionOf(f.pool, PoolFixture.SPC, PoolFixture.DB, 1, 0, i);
            seen[partition] = true;
            if (partition == 1 || partition == 2) {
                blocks.add(i);
            }
        }
        assertTrue(seen[0] && seen[1] && seen[2] && seen[3], "the case asks for four partitions");
        assertTrue(blocks.size() > 100);
        AtomicInteger failures = new AtomicInteger();
        Thread[] threads = new Thread[8];
        for (int t = 0; t < threads.length; t++) {
            int id = t;
            threads[t] =
                    new Thread(
                            () -> {
                                long x = id * 7919L + 1;
                                for (int i = 0; i < 10_000; i++) {
                                    x = x * 6364136223846793005L + 1442695040888963407L;
                                    int block = blocks.get((int) ((x >>> 33) % blocks.size()));
                                    int b = f.pool.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL);
                                    if (f.pool.block(b) != block) {
                                        failures.incrementAndGet();
                                    }
                                    f.pool.release(b);
                                }
                            });
            threads[t].start();
        }
        for (Thread t : threads) {
            t.join(20_000);
            assertFalse(t.isAlive(), "deadlock");
        }
        assertEquals(0, failures.get());
    }
}
