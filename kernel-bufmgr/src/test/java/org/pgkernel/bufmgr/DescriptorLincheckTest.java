package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.pgkernel.bufmgr.BufferState.*;

import java.lang.ref.Cleaner;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.StressOptions;
import org.jetbrains.lincheck.datastructures.ThreadIdGen;
import org.junit.jupiter.api.Test;

/**
 * The transitions of one state word are linearizable: pins, uses, flags and header lock behave as
 * if each change were made at one moment. Stress mode: the word lies outside the heap, where the
 * model checker does not see it.
 */
class DescriptorLincheckTest {
    private static final int BUFFER = 5;

    /** Thousands of these are made. */
    private static final Cleaner MEMORY = Cleaner.create();

    @Param(name = "thread", gen = ThreadIdGen.class)
    public static class Word {
        private static final int THREADS = 8;

        private final PoolMemory memory =
                new PoolMemory(16, BufferTable.bucketsFor(16), BufferTable.PARTITIONS);
        private final DirtyBitmap dirty = new DirtyBitmap(memory.dirtyBits, 16);
        final BufferDescriptors descriptors = new BufferDescriptors(memory, dirty);

        /** Pins of each thread; only it touches its own. */
        private final int[] pins = new int[THREADS];

        public Word() {
            int state = descriptors.lockHeader(BUFFER);
            descriptors.unlockHeader(BUFFER, state | VALID | TAG_VALID);
            PoolMemory words = memory;
            MEMORY.register(this, words::release);
        }

        /**
         * @return the word
         */
        @Operation
        public int pin(@Param(name = "thread") int thread) {
            pins[thread % THREADS]++;
            return descriptors.pin(BUFFER) & (REFCOUNT_MASK | USAGECOUNT_MASK);
        }

        /**
         * @return 0 without a pin; else 2 if a waiter must be woken, 1 if not
         */
        @Operation
        public int unpin(@Param(name = "thread") int thread) {
            if (pins[thread % THREADS] == 0) {
                return 0;
            }
            pins[thread % THREADS]--;
            return descriptors.unpin(BUFFER) ? 2 : 1;
        }

        @Operation
        public boolean markDirty(@Param(name = "thread") int thread) {
            if (pins[thread % THREADS] == 0) {
                return false;
            }
            descriptors.markDirty(BUFFER);
            return true;
        }

        /** As a writer does. @return whether it was dirty, and its bit then set */
        @Operation
        public int clean() {
            int state = descriptors.lockHeader(BUFFER);
            int was = state & (DIRTY | JUST_DIRTIED);
            descriptors.cleanAndUnlockHeader(BUFFER, state);
            return was;
        }

        /** As the clock hand does. @return the word */
        @Operation
        public int takeUse() {
            int state = descriptors.lockHeader(BUFFER);
            int next =
                    refcount(state) == 0 && usageCount(state) != 0 ? state - USAGECOUNT_ONE : state;
            descriptors.unlockHeader(BUFFER, next);
            return next & (REFCOUNT_MASK | USAGECOUNT_MASK);
        }

        /** As who wants a cleanup lock. @return false when there is a waiter already */
        @Operation
        public boolean becomeWaiter() {
            int state = descriptors.lockHeader(BUFFER);
            descriptors.unlockHeader(BUFFER, state | PIN_COUNT_WAITER);
            return (state & PIN_COUNT_WAITER) == 0;
        }

        @Operation
        public boolean endWait() {
            int state = descriptors.lockHeader(BUFFER);
            descriptors.unlockHeader(BUFFER, state & ~PIN_COUNT_WAITER);
            return (state & PIN_COUNT_WAITER) != 0;
        }

        @Operation
        public int look() {
            return descriptors.state(BUFFER) & ~LOCKED;
        }
    }

    /** A seeded fault: what was read before the header was locked is written back. */
    @Param(name = "thread", gen = ThreadIdGen.class)
    public static class StaleWord extends Word {
        @Override
        @Operation
        public int takeUse() {
            int state = descriptors.state(BUFFER) & ~LOCKED;
            descriptors.lockHeader(BUFFER);
            descriptors.unlockHeader(BUFFER, state);
            return state & (REFCOUNT_MASK | USAGECOUNT_MASK);
        }
    }

    @Test
    void transitionsOfTheStateWordAreLinearizable() {
        options().check(Word.class);
    }

    @Test
    void aStaleWriteBackIsFound() {
        assertThrows(Throwable.class, () -> options().iterations(100).check(StaleWord.class));
    }

    private static StressOptions options() {
        return new StressOptions()
                .iterations(20)
                .invocationsPerIteration(500)
                .threads(3)
                .actorsPerThread(4);
    }
}
