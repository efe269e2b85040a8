package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
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
import org.openjdk.jmh.annotations.Warmup;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.BufferPoolOptions;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.bufmgr.PoolFiller;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;

/**
 * What a strategy's bookkeeping adds to replacing a page by another. FULL_SCAN and LOOKUP keep
 * nothing. Pages of {@link #RELATIONS} relations come by turns, so that nothing but the clock sweep
 * knows what comes next.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 2, time = 1)
@Measurement(iterations = 3, time = 1)
@Fork(
        value = 2,
        jvmArgsAppend = {
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow"
        })
public class ReplacementCostBenchmark {
    private static final int BUFFERS = 16_384;
    private static final int RELATIONS = 128;
    private static final int BLOCKS = 2 * BUFFERS / RELATIONS;
    private static final int FIRST = 1000;

    @Param({"FULL_SCAN", "LOOKUP", "DLIST", "ADAPTIVE"})
    private DropStrategy strategy;

    private Scratch scratch;
    private StorageManager smgr;
    private BufferPool pool;
    private PoolFiller filler;
    private final SmgrRelation[] relations = new SmgrRelation[RELATIONS];
    private int next;

    @Setup(Level.Trial)
    public void open() throws IOException {
        scratch = new Scratch();
        String directory = scratch.resolve("data").toString();
        Files.createDirectories(scratch.resolve("data").resolve("base").resolve("1"));
        PosixDisk disk = new PosixDisk();
        smgr =
                new StorageManager(
                        disk,
                        directory,
                        StorageManager.SEGMENT_BLOCKS,
                        SizePolicy.SHARED,
                        new SyncRequests(disk, directory));
        BufferPoolOptions options = BufferPoolOptions.of(BUFFERS).withChecksums(false);
        pool = BufferPool.open(options.withStrategy(strategy), smgr, lsn -> {});
        filler = new PoolFiller(pool);
        for (int i = 0; i < RELATIONS; i++) {
            relations[i] = smgr.open(RelFileLocator.DEFAULT_TABLESPACE, 1, FIRST + i);
            relations[i].create(ForkNumber.MAIN, false);
            relations[i].zeroExtend(ForkNumber.MAIN, 0, BLOCKS, true);
        }
        for (int i = 0; i < RELATIONS * BLOCKS; i++) {
            replace();
        }
    }

    @TearDown(Level.Trial)
    public void close() {
        pool.close();
        smgr.close();
        scratch.close();
    }

    /**
     * Reads a page that is not there: clock sweep, another page's end, pread of 8 KiB from memory.
     */
    @Benchmark
    public int replace() {
        int page = step();
        SmgrRelation relation = relations[page & RELATIONS - 1];
        int buffer = pool.read(relation, ForkNumber.MAIN, page / RELATIONS, ReadMode.NORMAL);
        pool.release(buffer);
        return buffer;
    }

    /** The same without reading, which is what the bookkeeping's cost can be seen beside. */
    @Benchmark
    public int mapOnly() {
        int page = step();
        return filler.map(
                RelFileLocator.DEFAULT_TABLESPACE,
                1,
                FIRST + (page & RELATIONS - 1),
                0,
                page / RELATIONS);
    }

    private int step() {
        return next = next + 1 & RELATIONS * BLOCKS - 1;
    }
}
