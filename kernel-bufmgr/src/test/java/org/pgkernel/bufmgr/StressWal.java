package org.pgkernel.bufmgr;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.agrona.DirectBuffer;
import org.pgkernel.base.ForkNumber;

/**
 * A WAL of which there are only the positions: how far it was inserted, how far it is durable, and
 * where redo would begin. Thread-safe. As gate it notes what was made durable, so that the disk can
 * tell a page that came without it.
 */
final class StressWal implements DurabilityGate, HintImageLog {
    final LongAdder gateCalls = new LongAdder();
    final LongAdder images = new LongAdder();

    private final AtomicLong inserted = new AtomicLong(4096);
    private final AtomicLong durable = new AtomicLong(4096);
    private final AtomicLong redoPointer = new AtomicLong(4096);

    /** Shared: who is about to make a page dirty by a hint. Exclusive: who moves the pointer. */
    private final ReentrantReadWriteLock checkpointStart = new ReentrantReadWriteLock(true);

    /** A record. @return its end */
    long insert() {
        return inserted.addAndGet(64);
    }

    long durable() {
        return durable.get();
    }

    /** A checkpoint begins: redo would start here. */
    void moveRedoPointer() {
        checkpointStart.writeLock().lock();
        try {
            redoPointer.set(inserted.get());
        } finally {
            checkpointStart.writeLock().unlock();
        }
    }

    @Override
    public void beforeWrite(long pageLsn) {
        gateCalls.increment();
        if (pageLsn > inserted.get()) {
            throw new AssertionError("a page from the future lsn=" + pageLsn);
        }
        durable.accumulateAndGet(pageLsn, Math::max);
    }

    @Override
    public boolean wouldFlush(long pageLsn) {
        return pageLsn > durable.get();
    }

    @Override
    public void delayCheckpoint() {
        checkpointStart.readLock().lock();
    }

    @Override
    public void allowCheckpoint() {
        checkpointStart.readLock().unlock();
    }

    @Override
    public long redoPointer() {
        requireDelay();
        return redoPointer.get();
    }

    @Override
    public long logImage(
            int spc,
            int db,
            int rel,
            ForkNumber fork,
            int block,
            DirectBuffer page,
            boolean standard) {
        requireDelay();
        images.increment();
        return insert();
    }

    private void requireDelay() {
        if (checkpointStart.getReadHoldCount() == 0) {
            throw new AssertionError("a hint is logged while a checkpoint may begin");
        }
    }
}
