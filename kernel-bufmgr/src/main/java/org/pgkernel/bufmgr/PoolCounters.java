package org.pgkernel.bufmgr;

import java.util.function.LongSupplier;
import org.agrona.BitUtil;
import org.agrona.BufferUtil;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.AtomicCounter;
import org.agrona.concurrent.status.CountersManager;

/**
 * Counts what the pool does. Agrona's counters, outside the heap, each on cache lines of its own,
 * so that no two counters disturb each other. Hits, the only ones that come in nanoseconds, are
 * spread over several counters by thread and added up when read. Counting is one atomic addition,
 * takes no lock and allocates nothing.
 *
 * <p>Each value is exact once those who count have stopped; values read meanwhile are each right at
 * some moment, not all at the same. They never go down.
 */
public final class PoolCounters {
    /** A power of two. */
    private static final int STRIPES = 8;

    private static final PoolCounter[] COUNTERS = PoolCounter.values();
    private static final int CELLS = COUNTERS.length + STRIPES - 1;

    private final CountersManager manager =
            new CountersManager(
                    offHeap(CELLS * CountersManager.METADATA_LENGTH),
                    offHeap(CELLS * CountersManager.COUNTER_LENGTH));
    private final AtomicCounter[] cells = new AtomicCounter[COUNTERS.length];
    private final AtomicCounter[] hits = new AtomicCounter[STRIPES];

    /** Who counts {@link PoolCounter#SYNCS}. */
    private final LongSupplier syncs;

    PoolCounters(LongSupplier syncs) {
        this.syncs = syncs;
        for (PoolCounter counter : COUNTERS) {
            cells[counter.ordinal()] = manager.newCounter(counter.text());
        }
        hits[0] = cells[PoolCounter.HITS.ordinal()];
        for (int i = 1; i < STRIPES; i++) {
            hits[i] = manager.newCounter(PoolCounter.HITS.text() + " " + i);
        }
    }

    private static UnsafeBuffer offHeap(int bytes) {
        return new UnsafeBuffer(
                BufferUtil.allocateDirectAligned(bytes, 2 * BitUtil.CACHE_LINE_LENGTH));
    }

    public long value(PoolCounter counter) {
        if (counter == PoolCounter.SYNCS) {
            return syncs.getAsLong();
        }
        if (counter != PoolCounter.HITS) {
            return cells[counter.ordinal()].get();
        }
        long sum = 0;
        for (AtomicCounter stripe : hits) {
            sum += stripe.get();
        }
        return sum;
    }

    /** One line a counter: value, unit, name. */
    @Override
    public String toString() {
        StringBuilder lines = new StringBuilder();
        for (PoolCounter counter : COUNTERS) {
            lines.append(value(counter)).append(' ').append(counter.unit()).append(' ');
            lines.append(counter.text()).append('\n');
        }
        return lines.toString();
    }

    void hit() {
        hits[(int) Thread.currentThread().threadId() & STRIPES - 1].increment();
    }

    void read() {
        add(PoolCounter.READS, 1);
    }

    void extended(int pages) {
        add(PoolCounter.EXTENSIONS, pages);
    }

    void evicted() {
        add(PoolCounter.EVICTIONS, 1);
    }

    void written(WriteOrigin origin) {
        add(PoolCounter.of(origin), 1);
    }

    void dropped(DropPath path, int pages) {
        add(PoolCounter.of(path), 1);
        add(PoolCounter.DROPPED, pages);
    }

    private void add(PoolCounter counter, int count) {
        cells[counter.ordinal()].getAndAdd(count);
    }
}
