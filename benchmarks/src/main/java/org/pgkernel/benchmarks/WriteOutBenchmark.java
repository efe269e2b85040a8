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
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.smgr.SmgrRelation;

/**
 * How long a checkpoint and a flush look for dirty buffers before their first write, in a full
 * pool; and a drop of 100 pages. The first two are stopped where they would write, by a gate that
 * throws one and the same exception: so nothing is written, and the same pages are dirty each time.
 */
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 2, time = 1)
@Measurement(iterations = 3, time = 1)
@Fork(
        value = 1,
        jvmArgsAppend = {
            "-Xms1g",
            "-Xmx1g",
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow"
        })
public class WriteOutBenchmark {
    private static final KernelStoppedException HERE =
            new KernelStoppedException("stopped before the first write", null);

    /** A full pool, and some other dirty buffers in it. */
    @State(Scope.Benchmark)
    public abstract static class Pool {
        @Param("13107200")
        int buffers;

        @Param({"recovery", "primary"})
        String mode;

        @Param({"warm", "cold"})
        String caches;

        FilledPool filled;

        /** Kept, so that the walk is made. */
        public long sum;

        void fill(int dirty) throws IOException {
            filled = FilledPool.of(buffers, DropStrategy.ADAPTIVE, mode.equals("recovery"));
            filled.gate =
                    lsn -> {
                        throw HERE;
                    };
            for (int i = 0; i < dirty; i++) {
                filled.filler.dirty(filled.random.nextInt(buffers));
            }
        }

        /**
         * Until the compiler has done with it: with cold caches there are too few calls for that.
         */
        void warmUp(Runnable step) {
            for (int i = 0; i < 20_000; i++) {
                try {
                    step.run();
                } catch (KernelStoppedException e) {
                    expected(e);
                }
            }
        }

        void chill() {
            if (caches.equals("cold")) {
                sum += Cache.flush();
            }
        }
    }

    /** 1,000 dirty buffers anywhere in the pool. */
    @State(Scope.Benchmark)
    public static class ThousandDirty extends Pool {
        @Setup(Level.Trial)
        public void fill() throws IOException {
            fill(1000);
            warmUp(filled.pool::flushAll);
        }

        @Setup(Level.Invocation)
        public void prepare() {
            chill();
        }
    }

    /** A relation of 100 pages, 10 of them dirty, and 100,000 dirty buffers of others. */
    @State(Scope.Benchmark)
    public static class OneRelation extends Pool {
        @Param({"0", "100000"})
        int othersDirty;

        SmgrRelation relation;

        @Setup(Level.Trial)
        public void fill() throws IOException {
            fill(othersDirty);
            relation = filled.victim(100);
            filled.new Guests(100);
            for (int block = 0; block < 100; block++) {
                int buffer = filled.map(relation, block);
                if (block % 10 == 0) {
                    filled.filler.dirty(buffer);
                }
            }
            warmUp(() -> filled.pool.flushRelation(relation));
        }

        @Setup(Level.Invocation)
        public void prepare() {
            chill();
        }
    }

    /** A relation of 100 pages, all there. */
    @State(Scope.Benchmark)
    public static class Victim extends Pool {
        private final SmgrRelation[] victims = new SmgrRelation[1];
        private long dropped;

        @Setup(Level.Trial)
        public void fill() throws IOException {
            fill(0);
            victims[0] = filled.victim(100);
            filled.new Guests(100);
        }

        @Setup(Level.Invocation)
        public void prepare() {
            for (int block = 0; block < 100; block++) {
                filled.map(victims[0], block);
            }
            dropped = filled.pool.dropStatistics().buffersDropped;
            chill();
        }

        @TearDown(Level.Invocation)
        public void check() {
            if (filled.pool.dropStatistics().buffersDropped - dropped != 100) {
                throw new IllegalStateException("not 100 dropped");
            }
        }
    }

    /** Finds, marks and sorts 1,000 pages. */
    @Benchmark
    public int checkpointToTheFirstWrite(ThousandDirty state) {
        try {
            return state.filled.pool.flushAll();
        } catch (KernelStoppedException e) {
            return expected(e);
        }
    }

    /** The reference: every state word is looked at, 8 bytes a buffer, nothing marked or sorted. */
    @Benchmark
    public int lookAtAllDescriptors(ThousandDirty state) {
        return state.filled.filler.dirtyByLookingAtAll();
    }

    @Benchmark
    public int flushToTheFirstWrite(OneRelation state) {
        try {
            state.filled.pool.flushRelation(state.relation);
            throw new IllegalStateException("nothing was dirty");
        } catch (KernelStoppedException e) {
            return expected(e);
        }
    }

    @Benchmark
    public void dropHundredPages(Victim state) {
        state.filled.pool.dropRelations(state.victims, 1);
    }

    private static int expected(KernelStoppedException e) {
        if (e != HERE) {
            throw e;
        }
        return 0;
    }
}
