package org.pgkernel.benchmarks;

import java.io.IOException;
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
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;

/**
 * Opening and closing a pool: not in proportion to its size. The first iteration, cold, counts too:
 * see the warm-up iterations' figures.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Warmup(iterations = 1)
@Measurement(iterations = 10)
@Fork(
        value = 3,
        jvmArgsAppend = {
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow"
        })
public class PoolOpenBenchmark {
    /** 128 MB, 10 GB, 100 GB. */
    @Param({"16384", "1310720", "13107200"})
    private int buffers;

    private Scratch scratch;
    private StorageManager smgr;

    @Setup(Level.Trial)
    public void open() throws IOException {
        scratch = new Scratch();
        String directory = scratch.resolve("data").toString();
        PosixDisk disk = new PosixDisk();
        smgr =
                new StorageManager(
                        disk,
                        directory,
                        StorageManager.SEGMENT_BLOCKS,
                        SizePolicy.SHARED,
                        new SyncRequests(disk, directory));
    }

    @TearDown(Level.Trial)
    public void close() {
        smgr.close();
        scratch.close();
    }

    @Benchmark
    public int openAndClose() {
        try (BufferPool pool =
                BufferPool.open(buffers, smgr, lsn -> {}, false, DropStrategy.LOOKUP)) {
            return pool.nbuffers();
        }
    }
}
