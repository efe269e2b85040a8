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
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
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
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;

/**
 * Sixteen neighbouring pages that are not in the pool, read one by one and together; sixteen new
 * ones, added one by one and together. Time a page. The file is in the system's cache, victims are
 * clean. One thread.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 400, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 6, time = 400, timeUnit = TimeUnit.MILLISECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow"
        })
public class NeighbourBenchmark {
    private static final int BUFFERS = 16_384;
    private static final int BLOCKS = 4 * BUFFERS;
    private static final int RUN = 16;

    /** Where a growing fork is cut again. */
    private static final int MOST_BLOCKS = 8192;

    private static final ForkNumber MAIN = ForkNumber.MAIN;

    private Scratch scratch;
    private StorageManager smgr;
    private BufferPool pool;
    private SmgrRelation relation;
    private SmgrRelation growing;
    private final SmgrRelation[] toDrop = new SmgrRelation[1];
    private final int[] buffers = new int[RUN];
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
        pool = BufferPool.open(BufferPoolOptions.of(BUFFERS).withChecksums(false), smgr, lsn -> {});
        relation = smgr.open(RelFileLocator.DEFAULT_TABLESPACE, 1, 1000);
        relation.create(MAIN, false);
        relation.zeroExtend(MAIN, 0, BLOCKS, true);
        growing = smgr.open(RelFileLocator.DEFAULT_TABLESPACE, 1, 1001);
        growing.create(MAIN, false);
        toDrop[0] = growing;
        for (int block = 0; block < BLOCKS; block++) {
            pool.release(pool.read(relation, MAIN, block, ReadMode.NORMAL));
        }
    }

    @TearDown(Level.Trial)
    public void close() {
        pool.close();
        smgr.close();
        scratch.close();
    }

    private int step() {
        return next = next + 7919 * RUN & BLOCKS - 1;
    }

    @Benchmark
    @OperationsPerInvocation(RUN)
    public int readOneByOne() {
        int first = step();
        for (int i = 0; i < RUN; i++) {
            buffers[i] = pool.read(relation, MAIN, first + i, ReadMode.NORMAL);
        }
        return release(RUN);
    }

    @Benchmark
    @OperationsPerInvocation(RUN)
    public int readTogether() {
        return release(pool.readMany(relation, MAIN, step(), RUN, ReadMode.NORMAL, null, buffers));
    }

    @Benchmark
    @OperationsPerInvocation(RUN)
    public int extendOneByOne() {
        for (int i = 0; i < RUN; i++) {
            buffers[i] = pool.extend(growing, MAIN, false);
        }
        int last = release(RUN);
        cutSometimes();
        return last;
    }

    @Benchmark
    @OperationsPerInvocation(RUN)
    public int extendTogether() {
        int added = pool.extendBy(growing, MAIN, RUN, null, buffers, false);
        int last = release(added);
        cutSometimes();
        return last;
    }

    private int release(int count) {
        if (count != RUN) {
            throw new IllegalStateException("only " + count + " pages");
        }
        for (int i = 0; i < count; i++) {
            pool.release(buffers[i]);
        }
        return buffers[count - 1];
    }

    private void cutSometimes() {
        if (growing.nblocks(MAIN) >= MOST_BLOCKS) {
            pool.dropRelations(toDrop, 1);
            growing.truncate(MAIN, 0);
        }
    }
}
