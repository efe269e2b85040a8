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
import org.pgkernel.bufmgr.DropStrategy;

/**
 * What a strategy's bookkeeping adds to replacing a page by another. FULL_SCAN and LOOKUP keep
 * nothing. {@link ReplacementPairs} tells the ratio more exactly.
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
    @Param({"FULL_SCAN", "LOOKUP", "DLIST", "ADAPTIVE"})
    private DropStrategy strategy;

    private ReplacingPool pool;

    @Setup(Level.Trial)
    public void open() throws IOException {
        pool = new ReplacingPool(strategy);
    }

    @TearDown(Level.Trial)
    public void close() {
        pool.close();
    }

    @Benchmark
    public int replace() {
        return pool.replace();
    }

    @Benchmark
    public int mapOnly() {
        return pool.mapOnly();
    }
}
