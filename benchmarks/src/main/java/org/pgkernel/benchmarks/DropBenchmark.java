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
import org.pgkernel.smgr.SmgrRelation;

/**
 * Dropping one relation out of a pool that is full of others. An operation is one drop; its pages
 * are put back in between, in another order, and whether they are gone is checked after each drop.
 *
 * <p>{@code cell} is pages in the pool, spread uniformly over buffers and blocks, {@code /}, blocks
 * of the relation's only fork. Sizes known: as if redo had asked for them. Cold: the caches are
 * flushed before each drop.
 *
 * <p>{@link DropReport} runs the cells of one pool in one process ({@code -f 0}), so that it is
 * filled once. Medians count: the mean takes every interruption along.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 1, time = 300, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 1, time = 400, timeUnit = TimeUnit.MILLISECONDS)
@Fork(
        value = 1,
        jvmArgsAppend = {
            "-Xms1g",
            "-Xmx1g",
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow"
        })
public class DropBenchmark {
    @Param({"16384", "131072", "1310720", "13107200"})
    private int buffers;

    @Param({"FULL_SCAN", "LOOKUP", "DLIST", "ADAPTIVE"})
    private DropStrategy strategy;

    @Param({"0/1000", "1/1", "1/1000000", "100/100", "1000/1000", "1000/1000000"})
    private String cell;

    @Param({"known", "unknown"})
    private String sizes;

    @Param({"warm", "cold"})
    private String caches;

    private FilledPool filled;
    private FilledPool.Guests guests;
    private SmgrRelation victim;
    private final SmgrRelation[] victims = new SmgrRelation[1];
    private int blocks;
    private int[] resident;
    private long dropped;

    /** Kept, so that the walk is made. */
    public long sum;

    @Setup(Level.Trial)
    public void fill() throws IOException {
        String[] numbers = cell.split("/");
        resident = new int[Integer.parseInt(numbers[0])];
        blocks = Integer.parseInt(numbers[1]);
        filled = FilledPool.of(buffers, strategy);
        victim = filled.victim(blocks);
        victims[0] = victim;
        guests = filled.new Guests(resident.length);
    }

    @TearDown(Level.Trial)
    public void empty() {
        guests.comeBack();
        filled.remove(victim);
    }

    @Setup(Level.Invocation)
    public void bringVictims() {
        if (resident.length == 1) { // or one place would stand for all
            guests.comeBack();
            guests = filled.new Guests(1);
        }
        chooseBlocks();
        for (int block : resident) {
            filled.map(victim, block);
        }
        if (sizes.equals("known")) {
            FilledPool.know(victim);
        } else {
            victim.forgetSizes();
        }
        dropped = filled.pool.dropStatistics().buffersDropped;
        if (caches.equals("cold")) {
            sum += Cache.flush();
        }
    }

    /** All blocks, shuffled, or as many different ones as are needed. */
    private void chooseBlocks() {
        if (resident.length == blocks) {
            for (int i = 0; i < blocks; i++) {
                int j = filled.random.nextInt(i + 1);
                resident[i] = resident[j];
                resident[j] = i;
            }
            return;
        }
        for (int i = 0; i < resident.length; i++) { // one in each equal part, so that none is twice
            int part = blocks / resident.length;
            resident[i] = i * part + filled.random.nextInt(part);
        }
        for (int i = resident.length - 1; i > 0; i--) {
            int j = filled.random.nextInt(i + 1);
            int block = resident[i];
            resident[i] = resident[j];
            resident[j] = block;
        }
    }

    @Benchmark
    public void drop() {
        filled.pool.dropRelations(victims, 1);
    }

    @TearDown(Level.Invocation)
    public void check() {
        long gone = filled.pool.dropStatistics().buffersDropped - dropped;
        if (gone != resident.length) {
            throw new IllegalStateException(gone + " dropped of " + resident.length);
        }
        for (int block : resident) {
            if (filled.holds(victim, block)) {
                throw new IllegalStateException("block " + block + " is still in the pool");
            }
        }
    }
}
