package org.pgkernel.cli.bench;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.cli.Progress;
import org.pgkernel.fsm.FreeSpaceMap;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;
import org.pgkernel.testkit.FileTrees;

/**
 * Time of one search and of one record in the map of a heap of so many pages, all of the map in the
 * pool: each page has some room by chance, a search wants a bit more than half a page. Bytes
 * allocated are those of the thread.
 */
final class FsmSearch {
    private static final int[] HEAP_PAGES = {10, 10_000, 1_000_000};
    private static final int[] THREADS = {1, 2};
    private static final int BATCH = 200;
    private static final int WANTED = 4500;

    private final FsmSettings settings;
    private final FsmFigures figures;

    FsmSearch(FsmSettings settings, FsmFigures figures) {
        this.settings = settings;
        this.figures = figures;
    }

    /** What one thread did. */
    private static final class Work extends Thread {
        final BufferPool pool;
        final SmgrRelation heap;
        final int pages;
        final boolean searches;
        final long nanos;
        final CountDownLatch start;
        double nanosAnOperation;
        double bytesAnOperation;
        Throwable failure;

        Work(
                BufferPool pool,
                SmgrRelation heap,
                int pages,
                boolean searches,
                long nanos,
                CountDownLatch start) {
            this.pool = pool;
            this.heap = heap;
            this.pages = pages;
            this.searches = searches;
            this.nanos = nanos;
            this.start = start;
        }

        @Override
        public void run() {
            try (BackendBuffers buffers = pool.backend("search")) {
                FreeSpaceMap map = new FreeSpaceMap();
                SplittableRandom random = new SplittableRandom(threadId());
                start.countDown();
                start.await();
                work(map, buffers, random, nanos / 2); // warms up
                ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
                long allocated = threads.getCurrentThreadAllocatedBytes();
                long began = System.nanoTime();
                long done = work(map, buffers, random, nanos);
                nanosAnOperation = (double) (System.nanoTime() - began) / done;
                bytesAnOperation =
                        Math.floor(
                                (double) (threads.getCurrentThreadAllocatedBytes() - allocated)
                                        / done);
            } catch (Throwable e) {
                failure = e;
            }
        }

        private long work(
                FreeSpaceMap map, BackendBuffers buffers, SplittableRandom random, long nanos) {
            long until = System.nanoTime() + nanos;
            long done = 0;
            for (; System.nanoTime() < until; done += BATCH) {
                for (int i = 0; i < BATCH; i++) {
                    if (searches) {
                        if (map.pageWithFreeSpace(buffers, heap, WANTED) == BlockNumber.INVALID) {
                            throw new IllegalStateException("no page has room");
                        }
                    } else {
                        int block = random.nextInt(pages);
                        map.record(buffers, heap, block, random.nextInt(8000));
                    }
                }
            }
            return done;
        }
    }

    void run(Path directory) throws IOException, InterruptedException {
        Files.createDirectories(directory.resolve("base/5"));
        PosixDisk disk = new PosixDisk();
        String data = directory.toString();
        StorageManager smgr =
                new StorageManager(
                        disk,
                        data,
                        StorageManager.SEGMENT_BLOCKS,
                        SizePolicy.SHARED,
                        new SyncRequests(disk, data));
        int rounds = settings.rounds();
        int steps = HEAP_PAGES.length * THREADS.length * 2 * rounds;
        int done = 0;
        try (Progress progress = new Progress(System.err, "search", steps);
                smgr;
                BufferPool pool =
                        BufferPool.open(1024, smgr, lsn -> {}, false, DropStrategy.ADAPTIVE)) {
            for (int pages : HEAP_PAGES) {
                SmgrRelation heap = fill(smgr, pool, pages);
                for (int round = 0; round < rounds; round++) {
                    for (int threads : THREADS) {
                        for (boolean searches : new boolean[] {true, false}) {
                            measure(pool, heap, pages, threads, searches, round);
                            progress.at(++done);
                        }
                    }
                }
            }
        } finally {
            FileTrees.delete(directory);
        }
    }

    private static SmgrRelation fill(StorageManager smgr, BufferPool pool, int pages) {
        SmgrRelation heap = smgr.open(RelFileLocator.DEFAULT_TABLESPACE, 5, 16384 + pages);
        heap.create(ForkNumber.MAIN, false);
        for (int at = 0; at < pages; ) {
            // Within a segment; sparse, so that the heap takes no room.
            int count = Math.min(pages - at, 131_072 - at % 131_072);
            heap.zeroExtend(ForkNumber.MAIN, at, count, true);
            at += count;
        }
        try (BackendBuffers buffers = pool.backend("fill")) {
            FreeSpaceMap map = new FreeSpaceMap();
            SplittableRandom random = new SplittableRandom(1);
            for (int block = 0; block < pages; block++) {
                map.record(buffers, heap, block, block == 0 ? 8000 : random.nextInt(8000));
            }
            map.vacuumRange(buffers, heap, 0, BlockNumber.INVALID);
        }
        return heap;
    }

    private void measure(
            BufferPool pool, SmgrRelation heap, int pages, int threads, boolean searches, int round)
            throws InterruptedException {
        CountDownLatch start = new CountDownLatch(threads);
        Work[] all = new Work[threads];
        for (int i = 0; i < threads; i++) {
            all[i] =
                    new Work(
                            pool,
                            heap,
                            pages,
                            searches,
                            (long) (settings.seconds() * 0.3e9),
                            start);
            all[i].start();
        }
        double nanos = 0;
        double bytes = 0;
        for (Work work : all) {
            work.join();
            if (work.failure != null) {
                throw new IllegalStateException("a search failed", work.failure);
            }
            nanos += work.nanosAnOperation / threads;
            bytes = Math.max(bytes, work.bytesAnOperation);
        }
        String what = pages + " heap pages, " + threads + (threads == 1 ? " thread" : " threads");
        String operation = searches ? "search" : "record";
        figures.add("search", what, operation + " ns", FsmFigures.BASE, round, nanos);
        figures.add("search", what, operation + " bytes allocated", FsmFigures.BASE, round, bytes);
    }
}
