package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.smgr.SmgrRelation;

/** The snapshot tells what is there, row by row, also while it changes. */
class PoolSnapshotTest {
    private static final int THREADS = 4;
    private static final int RELATIONS = 6;
    private static final int SNAPSHOTS = 200;

    @TempDir Path directory;

    private record Row(
            int buffer,
            RelFileLocator relation,
            int fork,
            int block,
            boolean dirty,
            int usageCount,
            int pins) {}

    private static List<Row> rows(BufferPool pool) {
        List<Row> rows = new ArrayList<>();
        pool.snapshot()
                .forEach(
                        (buffer, spc, db, rel, fork, block, dirty, usage, pins) ->
                                rows.add(
                                        new Row(
                                                buffer,
                                                new RelFileLocator(spc, db, rel),
                                                fork,
                                                block,
                                                dirty,
                                                usage,
                                                pins)));
        return rows;
    }

    @Test
    void atRestItIsTheInspectionsPicture() {
        try (PoolFixture f =
                new PoolFixture(directory, true).pool(64, false, DropStrategy.LOOKUP)) {
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
            f.change(r, ForkNumber.MAIN, 3, 9);
            int pinned = f.pool.read(r, ForkNumber.MAIN, 5, ReadMode.NORMAL);
            List<Row> expected =
                    PoolInspection.descriptors(f.pool).stream()
                            .map(
                                    d ->
                                            new Row(
                                                    d.buffer(),
                                                    d.relation(),
                                                    d.fork(),
                                                    d.block(),
                                                    d.dirty(),
                                                    d.usageCount(),
                                                    d.refcount()))
                            .toList();
            List<Row> rows = rows(f.pool);
            assertEquals(expected, rows);
            assertEquals(1, rows.stream().filter(row -> row.pins() == 1).count());
            assertEquals(
                    new PoolSnapshot.Summary(
                            40,
                            24,
                            1,
                            1,
                            rows.stream().mapToInt(Row::usageCount).average().getAsDouble()),
                    f.pool.snapshot().summary());
            f.pool.release(pinned);
        }
    }

    @Test
    void ofAnEmptyPoolItHasNoRows() {
        try (PoolFixture f =
                new PoolFixture(directory, true).pool(64, false, DropStrategy.LOOKUP)) {
            assertEquals(List.of(), rows(f.pool));
            PoolSnapshot.Summary summary = f.pool.snapshot().summary();
            assertEquals(64, summary.unused());
            assertTrue(Double.isNaN(summary.averageUsage()));
        }
    }

    /**
     * A tag put together of two pages would name a block that does not exist: relation n has its
     * pages in a fork of its own, and blocks from 0 to 10 n.
     */
    @Test
    @Timeout(60)
    void rowsAreWholeWhileOthersReadEvictAndDirty() throws InterruptedException {
        try (PoolFixture f =
                new PoolFixture(directory, true).pool(16, false, DropStrategy.ADAPTIVE)) {
            SmgrRelation[] relations = new SmgrRelation[RELATIONS];
            for (int n = 0; n < RELATIONS; n++) {
                relations[n] = f.create(n + 1, fork(n + 1), blocks(n + 1));
            }
            AtomicInteger running = new AtomicInteger(THREADS);
            AtomicReference<Throwable> failure = new AtomicReference<>();
            AtomicInteger finished = new AtomicInteger();
            Thread[] threads = new Thread[THREADS];
            for (int t = 0; t < THREADS; t++) {
                SplittableRandom random = new SplittableRandom(t);
                threads[t] =
                        new Thread(
                                () -> {
                                    try {
                                        while (finished.get() == 0) {
                                            work(f, relations, random);
                                        }
                                    } catch (Throwable e) {
                                        failure.compareAndSet(null, e);
                                    } finally {
                                        running.decrementAndGet();
                                    }
                                });
                threads[t].start();
            }
            int seen = 0;
            try {
                for (int i = 0; i < SNAPSHOTS && running.get() == THREADS; i++) {
                    for (Row row : rows(f.pool)) {
                        seen++;
                        check(row);
                    }
                    PoolSnapshot.Summary summary = f.pool.snapshot().summary();
                    assertEquals(16, summary.used() + summary.unused());
                    assertTrue(summary.dirty() <= summary.used());
                }
            } finally {
                finished.set(1);
                for (Thread thread : threads) {
                    thread.join();
                }
            }
            assertEquals(null, failure.get());
            assertTrue(seen > SNAPSHOTS, "rows: " + seen);
            PoolInspection.check(f.pool);
        }
    }

    private static ForkNumber fork(int rel) {
        return ForkNumber.of(rel % 3);
    }

    private static int blocks(int rel) {
        return 10 * rel;
    }

    private static void work(PoolFixture f, SmgrRelation[] relations, SplittableRandom random) {
        SmgrRelation relation = relations[random.nextInt(RELATIONS)];
        int rel = relation.relNumber();
        int block = random.nextInt(blocks(rel));
        if (random.nextInt(3) == 0) {
            f.change(relation, fork(rel), block, block);
        } else {
            f.pool.release(f.pool.read(relation, fork(rel), block, ReadMode.NORMAL));
        }
    }

    private static void check(Row row) {
        int rel = row.relation().relNumber();
        assertTrue(rel >= 1 && rel <= RELATIONS, row.toString());
        assertEquals(PoolFixture.SPC, row.relation().spcOid(), row.toString());
        assertEquals(PoolFixture.DB, row.relation().dbOid(), row.toString());
        assertEquals(fork(rel).ordinal(), row.fork(), row.toString());
        assertTrue(row.block() >= 0 && row.block() < blocks(rel), row.toString());
        assertTrue(row.usageCount() <= 5 && row.pins() <= 2 * THREADS, row.toString());
    }
}
