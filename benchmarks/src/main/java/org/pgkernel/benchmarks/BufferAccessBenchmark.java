package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
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
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;

/**
 * Reads of pages that are in the pool, and of pages that are not (each evicts another). One thread.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(
        value = 1,
        jvmArgsAppend = {
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow"
        })
public class BufferAccessBenchmark {
    private static final int BUFFERS = 16_384;
    private static final int BLOCKS = 4 * BUFFERS;

    private Scratch scratch;
    private StorageManager smgr;
    private BufferPool pool;
    private SmgrRelation relation;
    private final UnsafeBuffer page = new UnsafeBuffer(0, 0);
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
        pool = BufferPool.open(BUFFERS, smgr, lsn -> {}, false, DropStrategy.LOOKUP);
        relation = smgr.open(RelFileLocator.DEFAULT_TABLESPACE, 1, 1000);
        relation.create(ForkNumber.MAIN, false);
        relation.zeroExtend(ForkNumber.MAIN, 0, BLOCKS, true);
        for (int block = 0; block < BLOCKS; block++) {
            pool.release(pool.read(relation, ForkNumber.MAIN, block, ReadMode.NORMAL));
        }
    }

    @TearDown(Level.Trial)
    public void close() {
        pool.close();
        smgr.close();
        scratch.close();
    }

    /** A page that is there: lookup, pin, exclusive lock, look at it, unlock, unpin. */
    @Benchmark
    public int hit() {
        next = next + 7919 & 1023;
        int buffer = pool.read(relation, ForkNumber.MAIN, BLOCKS - 1024 + next, ReadMode.NORMAL);
        pool.lockExclusive(buffer);
        pool.wrap(buffer, page);
        int lower = page.getInt(12);
        pool.unlock(buffer);
        pool.release(buffer);
        return lower;
    }

    /**
     * A page that is not there: clock sweep, mapping change, pread of 8 KiB from the system's
     * cache.
     */
    @Benchmark
    public int miss() {
        next = next + 7919 & BLOCKS - 1;
        int buffer = pool.read(relation, ForkNumber.MAIN, next, ReadMode.NORMAL);
        pool.release(buffer);
        return buffer;
    }
}
