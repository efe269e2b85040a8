package org.pgkernel.benchmarks;

import java.util.concurrent.TimeUnit;
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
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.annotations.Warmup;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.bufmgr.LookupStyle;
import org.pgkernel.bufmgr.ReadMode;

/**
 * The same as {@link LookupPinBenchmark} as sessions and workers do it: each thread is a backend
 * that counts its own pins, and under {@link LookupStyle#OPTIMISTIC} may retain some of them.
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
public class BackendPinBenchmark {
    /** A thread's. */
    @State(Scope.Thread)
    public static class Backend {
        private BackendBuffers buffers;

        @Setup(Level.Trial)
        public void open(LookupPinBenchmark.Pool pool) {
            buffers = pool.pool.backend("benchmark");
        }

        @TearDown(Level.Trial)
        public void close() {
            buffers.close();
        }
    }

    private static int pinAndUnpin(LookupPinBenchmark.Pool pool, Backend backend, int block) {
        int buffer = backend.buffers.read(pool.relation, ForkNumber.MAIN, block, ReadMode.NORMAL);
        backend.buffers.release(buffer);
        return buffer;
    }

    @Benchmark
    @Threads(1)
    public int uniformOneThread(
            LookupPinBenchmark.Pool pool, Backend backend, LookupPinBenchmark.Blocks blocks) {
        return pinAndUnpin(pool, backend, blocks.next(pool.buffers));
    }

    @Benchmark
    @Threads(2)
    public int uniformTwoThreads(
            LookupPinBenchmark.Pool pool, Backend backend, LookupPinBenchmark.Blocks blocks) {
        return pinAndUnpin(pool, backend, blocks.next(pool.buffers));
    }

    @Benchmark
    @Threads(1)
    public int oneHotPageOneThread(LookupPinBenchmark.Pool pool, Backend backend) {
        return pinAndUnpin(pool, backend, 7);
    }

    @Benchmark
    @Threads(2)
    public int oneHotPageTwoThreads(LookupPinBenchmark.Pool pool, Backend backend) {
        return pinAndUnpin(pool, backend, 7);
    }
}
