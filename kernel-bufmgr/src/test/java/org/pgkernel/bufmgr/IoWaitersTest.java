package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.smgr.SmgrRelation;

/** Many threads want one block that is not in the pool: one reads, the others wait for him. */
@Timeout(60)
class IoWaitersTest {
    private static final int WAITERS = 6;

    @TempDir Path directory;

    PoolFixture f;
    SmgrRelation r;
    final AtomicInteger reads = new AtomicInteger();
    final AtomicInteger atOnce = new AtomicInteger();
    final AtomicInteger mostAtOnce = new AtomicInteger();

    /** How many reads, from the first on, fail. */
    volatile int failing;

    @BeforeEach
    void open() {
        f = new PoolFixture(directory, false).pool(16, true, DropStrategy.ADAPTIVE);
        r = f.create(1, ForkNumber.MAIN, 40);
        f.evictAll(f.create(2, ForkNumber.MAIN, 16));
        f.disk.beforeRead =
                (path, offset) -> {
                    mostAtOnce.accumulateAndGet(atOnce.incrementAndGet(), Math::max);
                    try {
                        if (reads.incrementAndGet() == 1) {
                            awaitPins(WAITERS + 1); // all others stand before the buffer
                        }
                        if (reads.get() <= failing) {
                            throw new DiskException("planted file=" + path, DiskException.EIO);
                        }
                    } finally {
                        atOnce.decrementAndGet();
                    }
                };
    }

    @AfterEach
    void close() {
        assertEquals(0, f.pool.pinnedBuffers(), "BUF-8: pins left");
        PoolInspection.check(f.pool);
        f.close();
    }

    @Test
    void allWaitersGetThePageOfTheOneReader() throws Exception {
        assertEquals(0, failures(startReaders()));
        assertEquals(1, reads.get());
    }

    @Test
    void aFailedReadersWorkGoesToOneWaiterAtATime() throws Exception {
        for (failing = 1; failing <= WAITERS; failing++) {
            reads.set(0);
            mostAtOnce.set(0);
            List<FutureTask<Integer>> readers = startReaders();
            assertEquals(failing, failures(readers), "each failure is one caller's");
            assertEquals(failing + 1, reads.get(), "the first success ends the reading");
            assertEquals(1, mostAtOnce.get(), "two read one block at once");
            f.evictAll(f.relation(2));
        }
    }

    @Test
    void whenEveryReaderFailsEachIsToldAndNothingStays() throws Exception {
        failing = Integer.MAX_VALUE;
        assertEquals(WAITERS + 1, failures(startReaders()));
        assertEquals(-1, f.pool.allocator.probe(PoolFixture.SPC, PoolFixture.DB, 1, 0, 5), "left");
        assertEquals(1, mostAtOnce.get());
        failing = 0;
        assertEquals(0, f.readVersion(r, ForkNumber.MAIN, 5));
    }

    @Test
    void interruptedWaitersGetThePageAndKeepTheirInterrupt() throws Exception {
        List<FutureTask<Integer>> readers = new ArrayList<>();
        AtomicInteger kept = new AtomicInteger();
        for (int i = 0; i <= WAITERS; i++) {
            readers.add(
                    JustDirtiedTest.start(
                            () -> {
                                Thread.currentThread().interrupt();
                                int version = f.readVersion(r, ForkNumber.MAIN, 5);
                                if (Thread.interrupted()) {
                                    kept.incrementAndGet();
                                }
                                return version;
                            }));
        }
        assertEquals(0, failures(readers));
        assertEquals(WAITERS + 1, kept.get());
        assertEquals(1, reads.get());
    }

    private List<FutureTask<Integer>> startReaders() {
        List<FutureTask<Integer>> readers = new ArrayList<>();
        for (int i = 0; i <= WAITERS; i++) {
            readers.add(JustDirtiedTest.start(() -> f.readVersion(r, ForkNumber.MAIN, 5)));
        }
        return readers;
    }

    private static int failures(List<FutureTask<Integer>> readers) throws InterruptedException {
        int failures = 0;
        for (FutureTask<Integer> reader : readers) {
            try {
                assertEquals(0, reader.get());
            } catch (ExecutionException e) {
                assertInstanceOf(DiskException.class, e.getCause());
                failures++;
            }
        }
        return failures;
    }

    /** Returns when so many have pinned the block's buffer. */
    private void awaitPins(int pins) {
        int buffer = f.pool.allocator.probe(PoolFixture.SPC, PoolFixture.DB, 1, 0, 5);
        while (f.refcount(buffer) < pins) {
            Thread.onSpinWait();
        }
    }
}
