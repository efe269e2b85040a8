package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import java.util.concurrent.atomic.AtomicLong;
import org.pgkernel.base.error.NoFreeBufferException;

/**
 * PostgreSQL's policy: the hand goes round over the buffers' numbers, takes a use from every
 * unpinned buffer it meets and chooses the first that has none left. No lock, and nothing kept but
 * the hand. (PostgreSQL: ClockSweepTick, StrategyGetBuffer, freelist.c.)
 */
final class ClockSweep implements ReplacementPolicy {
    private final BufferDescriptors descriptors;
    private final PinRetention retention;
    private final int nbuffers;

    /** Ticks since the pool was opened. Moved by everybody. */
    private final AtomicLong hand = new AtomicLong();

    ClockSweep(BufferDescriptors descriptors, PinRetention retention, int nbuffers) {
        this.descriptors = descriptors;
        this.retention = retention;
        this.nbuffers = nbuffers;
    }

    @Override
    public int victim(int hash) {
        int tries = nbuffers;
        for (; ; ) {
            int buffer = (int) (hand.getAndIncrement() % nbuffers);
            int state = descriptors.lockHeader(buffer);
            if (refcount(state) != 0) {
                descriptors.unlockHeader(buffer, state);
                if (retention.takeBack(buffer) != 0) {
                    tries = nbuffers;
                } else if (--tries == 0) {
                    throw noneUnpinned(nbuffers);
                }
            } else if (usageCount(state) != 0) {
                descriptors.unlockHeader(buffer, state - USAGECOUNT_ONE);
                tries = nbuffers;
            } else {
                descriptors.pinAndUnlockHeader(buffer, state);
                return buffer;
            }
        }
    }

    static NoFreeBufferException noneUnpinned(int nbuffers) {
        return new NoFreeBufferException(
                "no unpinned buffer: all "
                        + nbuffers
                        + " of the pool are in use nbuffers="
                        + nbuffers);
    }

    /** The hand comes by at every buffer, used or not. */
    @Override
    public void taken(int buffer, int hash) {}

    @Override
    public int firstUses() {
        return USAGECOUNT_ONE;
    }

    @Override
    public long ticks() {
        return hand.get();
    }

    @Override
    public int hand() {
        return (int) (hand.get() % nbuffers);
    }

    @Override
    public int after(int buffer) {
        return buffer + 1 == nbuffers ? 0 : buffer + 1;
    }

    @Override
    public String fault(int used) {
        return null;
    }
}
