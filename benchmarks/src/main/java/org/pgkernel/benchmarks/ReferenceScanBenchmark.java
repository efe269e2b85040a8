package org.pgkernel.benchmarks;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
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
import org.pgkernel.base.BufferTag;
import org.pgkernel.base.disk.NativeMemory;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.smgr.SmgrRelation;

/**
 * What of the gain is the layout's: a scan for a relation that has no page, over descriptors 64
 * bytes apart, as PostgreSQL has them, beside FULL_SCAN, which reads tags of 20 bytes with nothing
 * between. The rest is the algorithm's.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 1, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 1, time = 1)
@Fork(
        value = 1,
        jvmArgsAppend = {
            "-Xms1g",
            "-Xmx1g",
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow"
        })
public class ReferenceScanBenchmark {
    /** Bytes of a BufferDesc: padded to a cache line. (PostgreSQL: BUFFERDESC_PAD_TO_SIZE.) */
    private static final int DESCRIPTOR = 64;

    private static final int OTHER = 1_000_000;

    @Param({"16384", "131072", "1310720", "13107200"})
    private int buffers;

    @Param({"warm", "cold"})
    private String caches;

    private final UnsafeBuffer descriptors = new UnsafeBuffer(0L, 0);
    private long address;
    private FilledPool filled;
    private SmgrRelation absent;
    private final SmgrRelation[] relations = new SmgrRelation[1];

    public long sum;

    @Setup(Level.Trial)
    public void fill() throws IOException {
        long bytes = (long) buffers * DESCRIPTOR;
        address = NativeMemory.reserve(bytes);
        NativeMemory.adviseHuge(address, bytes);
        descriptors.wrap(address, (int) bytes);
        for (int i = 0; i < buffers; i++) {
            BufferTag.put(
                    descriptors, i * DESCRIPTOR, FilledPool.SPC, FilledPool.DB, OTHER + i, 0, i);
        }
        filled = FilledPool.of(buffers, DropStrategy.FULL_SCAN);
        absent = filled.victim(1);
        relations[0] = absent;
    }

    @TearDown(Level.Trial)
    public void release() {
        filled.remove(absent);
        descriptors.wrap(0L, 0);
        NativeMemory.release(address, (long) buffers * DESCRIPTOR);
    }

    @Setup(Level.Invocation)
    public void flush() {
        if (caches.equals("cold")) {
            sum += Cache.flush();
        }
    }

    /** PostgreSQL's layout. */
    @Benchmark
    public int descriptors64() {
        int rel = absent.relNumber();
        int found = 0;
        for (int buffer = 0; buffer < buffers; buffer++) {
            int offset = buffer * DESCRIPTOR;
            if (descriptors.getInt(offset + BufferTag.REL_OFFSET) == rel
                    && descriptors.getInt(offset + BufferTag.DB_OFFSET) == FilledPool.DB
                    && descriptors.getInt(offset + BufferTag.SPC_OFFSET) == FilledPool.SPC) {
                found++;
            }
        }
        return found;
    }

    /** Ours. */
    @Benchmark
    public void fullScan() {
        filled.pool.dropRelations(relations, 1);
    }
}
