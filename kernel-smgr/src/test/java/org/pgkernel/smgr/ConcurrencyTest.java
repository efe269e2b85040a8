package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.disk.NativeMemory;
import org.pgkernel.base.disk.PosixDisk;

/** Several backends, a checkpointer, handles closed under them, and hardly any descriptors. */
class ConcurrencyTest {
    @TempDir Path directory;

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    @Timeout(60)
    void backendsCheckpointerAndClosesDoNotDisturbEachOther(SizePolicy policy) throws Exception {
        try (Fixture f = new Fixture(directory, policy, new PosixDisk(), 4)) {
            int relations = 6;
            int blocksEach = 40;
            for (int i = 0; i < relations; i++) {
                f.relation(100 + i).create(Fixture.MAIN, false);
            }
            AtomicBoolean done = new AtomicBoolean();
            ExecutorService threads = Executors.newFixedThreadPool(8);
            List<Future<?>> others = new ArrayList<>();
            others.add(threads.submit(until(done, () -> f.checkpoint())));
            others.add(
                    threads.submit(
                            until(
                                    done,
                                    () -> {
                                        for (int i = 0; i < relations; i++) {
                                            f.manager.close(f.relation(100 + i));
                                        }
                                        Thread.sleep(1);
                                        return null;
                                    })));
            List<Future<?>> backends = new ArrayList<>();
            for (int t = 0; t < 3; t++) {
                int seed = t;
                backends.add(threads.submit(() -> backend(f, relations, blocksEach, seed)));
            }
            List<Future<?>> droppers = new ArrayList<>();
            droppers.add(threads.submit(() -> dropper(f)));
            for (Future<?> backend : backends) {
                backend.get();
            }
            for (Future<?> dropper : droppers) {
                dropper.get();
            }
            done.set(true);
            for (Future<?> other : others) {
                other.get();
            }
            threads.shutdown();
            threads.awaitTermination(10, TimeUnit.SECONDS);
            f.checkpoint();
            f.manager.closeAll();
            assertEquals(0, f.manager.openFileCount());
            assertEquals(0, Fixture.descriptors(directory));
            for (int i = 0; i < relations; i++) {
                assertEquals(blocksEach, f.relation(100 + i).nblocks(Fixture.MAIN));
                for (int block = 0; block < blocksEach; block++) {
                    assertEquals(block, f.read(f.relation(100 + i), Fixture.MAIN, block));
                }
            }
        }
        assertEquals(0, Fixture.descriptors(directory));
    }

    /**
     * Extends each relation with whoever comes along, one lock a relation as the relation extension
     * lock, and reads back.
     */
    private static Void backend(Fixture f, int relations, int blocksEach, int seed) {
        long address = NativeMemory.reserve(Fixture.PAGE);
        org.agrona.concurrent.UnsafeBuffer page =
                new org.agrona.concurrent.UnsafeBuffer(address, Fixture.PAGE);
        boolean growing = true;
        while (growing) {
            growing = false;
            for (int i = 0; i < relations; i++) {
                int number = 100 + (i + seed) % relations;
                synchronized (LOCKS[(i + seed) % relations]) {
                    int blocks = f.relation(number).nblocks(Fixture.MAIN);
                    if (blocks < blocksEach) {
                        page.setMemory(0, Fixture.PAGE, (byte) blocks);
                        f.relation(number).extend(Fixture.MAIN, blocks, address, false);
                        growing = true;
                    }
                }
                SmgrRelation relation = f.relation(number);
                int last = relation.nblocks(Fixture.MAIN) - 1;
                relation.read(Fixture.MAIN, last, address);
                if (page.getByte(0) != (byte) last
                        || page.getByte(Fixture.PAGE - 1) != (byte) last) {
                    throw new AssertionError(
                            "relation " + number + " block " + last + " holds " + page.getByte(0));
                }
                relation.write(Fixture.MAIN, last, address, false);
                relation.prefetch(Fixture.MAIN, last);
                relation.startWriteback(Fixture.MAIN, 0, last + 1);
            }
        }
        return null;
    }

    private static final Object[] LOCKS = {
        new Object(), new Object(), new Object(), new Object(), new Object(), new Object()
    };

    /** Creates and drops relations of its own, as redo and outside of it. */
    private static Void dropper(Fixture f) {
        long address = NativeMemory.reserve(Fixture.PAGE);
        for (int i = 0; i < 300; i++) {
            SmgrRelation relation = f.relation(1000 + i);
            relation.create(Fixture.MAIN, false);
            relation.extend(Fixture.MAIN, 0, address, false);
            relation.zeroExtend(Fixture.MAIN, 1, 20, false);
            relation.truncate(Fixture.MAIN, 3);
            if (relation.nblocks(Fixture.MAIN) != 3) {
                throw new AssertionError("size " + relation.nblocks(Fixture.MAIN));
            }
            f.manager.unlinkAll(new SmgrRelation[] {relation}, 1, i % 2 == 0);
        }
        return null;
    }

    private static Callable<Void> until(AtomicBoolean done, Callable<?> step) {
        return () -> {
            while (!done.get()) {
                step.call();
            }
            return null;
        };
    }

    @Test
    @Timeout(60)
    void aHandleIsFoundWhileTheTableGrowsAndShrinks() throws Exception {
        try (Fixture f = new Fixture(directory, SizePolicy.SHARED)) {
            AtomicBoolean done = new AtomicBoolean();
            AtomicInteger found = new AtomicInteger();
            CountDownLatch started = new CountDownLatch(1);
            SmgrRelation kept = f.relation(7);
            Thread reader =
                    new Thread(
                            () -> {
                                started.countDown();
                                while (!done.get()) {
                                    if (f.relation(7) != kept) {
                                        found.set(-1);
                                        return;
                                    }
                                    found.incrementAndGet();
                                }
                            });
            reader.start();
            started.await();
            for (int round = 0; round < 20; round++) {
                SmgrRelation[] many = new SmgrRelation[2000];
                for (int i = 0; i < many.length; i++) {
                    many[i] = f.relation(1000 + i);
                }
                for (SmgrRelation relation : many) {
                    f.manager.close(relation);
                }
            }
            done.set(true);
            reader.join();
            assertEquals(true, found.get() > 0, "the kept handle was always the one found");
        }
    }
}
