package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.annotations.Warmup;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.BufferPoolOptions;
import org.pgkernel.bufmgr.LookupStyle;
import org.pgkernel.bufmgr.PoolFiller;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;

/**
 * A page that is in the pool: lookup, pin, unpin, by either {@link LookupStyle}. Uniformly over a
 * full pool, and all threads on one page. The pages' bytes are not touched. Through the pool
 * itself, as redo, checkpoints and writers do it; for backends see {@link BackendPinBenchmark}.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 250, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 8, time = 250, timeUnit = TimeUnit.MILLISECONDS)
@Fork(
        value = 3,
        jvmArgsAppend = {
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow"
        })
public class LookupPinBenchmark {
    private static final int DB = 1;
    private static final int REL = 1000;

    /** A pool in which every buffer holds a page of one relation. */
    @State(Scope.Benchmark)
    public static class Pool {
        @Param({"OPTIMISTIC", "PARTITION_LOCK"})
        private LookupStyle style;

        @Param("131072")
        int buffers;

        private Scratch scratch;
        private StorageManager smgr;
        BufferPool pool;
        SmgrRelation relation;

        @Setup(Level.Trial)
        public void open() throws IOException {
            scratch = new Scratch();
            String directory = scratch.resolve("data").toString();
            Files.createDirectories(scratch.resolve("data").resolve("base").resolve("" + DB));
            PosixDisk disk = new PosixDisk();
            smgr =
                    new StorageManager(
                            disk,
                            directory,
                            StorageManager.SEGMENT_BLOCKS,
                            SizePolicy.SHARED,
                            new SyncRequests(disk, directory));
            pool =
                    BufferPool.open(
                            BufferPoolOptions.of(buffers)
                                    .withChecksums(false)
                                    .withLookupStyle(style),
                            smgr,
                            lsn -> {});
            relation = smgr.open(RelFileLocator.DEFAULT_TABLESPACE, DB, REL);
            PoolFiller filler = new PoolFiller(pool);
            for (int block = 0; block < buffers; block++) {
                filler.map(
                        RelFileLocator.DEFAULT_TABLESPACE,
                        DB,
                        REL,
                        ForkNumber.MAIN.ordinal(),
                        block);
            }
        }

        @TearDown(Level.Trial)
        public void close() {
            if (pool.pinnedBuffers() != 0) {
                throw new IllegalStateException("pins left: " + pool.pinnedBuffers());
            }
            pool.close();
            smgr.close();
            scratch.close();
        }
    }

    /** Which block comes next. */
    @State(Scope.Thread)
    public static class Blocks {
        private long x = ThreadLocalRandom.current().nextLong() | 1;

        int next(int count) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
            return (int) ((x >>> 33) * count >>> 31);
        }
    }

    private static int pinAndUnpin(Pool pool, int block) {
        int buffer = pool.pool.read(pool.relation, ForkNumber.MAIN, block, ReadMode.NORMAL);
        pool.pool.release(buffer);
        return buffer;
    }

    @Benchmark
    @Threads(1)
    public int uniformOneThread(Pool pool, Blocks blocks) {
        return pinAndUnpin(pool, blocks.next(pool.buffers));
    }

    @Benchmark
    @Threads(2)
    public int uniformTwoThreads(Pool pool, Blocks blocks) {
        return pinAndUnpin(pool, blocks.next(pool.buffers));
    }

    @Benchmark
    @Threads(1)
    public int oneHotPageOneThread(Pool pool) {
        return pinAndUnpin(pool, 7);
    }

    @Benchmark
    @Threads(2)
    public int oneHotPageTwoThreads(Pool pool) {
        return pinAndUnpin(pool, 7);
    }
}
