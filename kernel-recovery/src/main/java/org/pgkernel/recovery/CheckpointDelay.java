package org.pgkernel.recovery;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Holds checkpoints back for moments in which they would miss something: whoever logs a change and
 * marks its page dirty, or sets its status, only afterwards (until that is done a checkpoint whose
 * redo point lies after the record must not write), and whoever has thrown buffers away but not cut
 * the file yet (until that is done no checkpoint may complete, C03).
 *
 * <p>A checkpoint fixes its redo point, then waits for those who were inside at that moment; who
 * enters later logs behind the redo point. Each call is closed by its counterpart in the same
 * thread, also after a failure; a thread does not nest calls of one kind. Nobody waits for a
 * checkpoint in between. All methods may be called by many threads; entering and leaving allocate
 * nothing. (PostgreSQL: DELAY_CHKPT_START, DELAY_CHKPT_COMPLETE, HaveVirtualXIDsDelayingChkpt.)
 */
public final class CheckpointDelay {
    private final Inside start = new Inside();
    private final Inside completion = new Inside();

    /**
     * From here to {@link #allowStart} a checkpoint that has fixed its redo point writes nothing.
     */
    public void delayStart() {
        start.enter();
    }

    public void allowStart() {
        start.leave();
    }

    /** From here to {@link #allowCompletion} no checkpoint writes its record. */
    public void delayCompletion() {
        completion.enter();
    }

    public void allowCompletion() {
        completion.leave();
    }

    Inside start() {
        return start;
    }

    Inside completion() {
        return completion;
    }

    /**
     * Who is inside: a word for some of the threads each, how many of them are inside below, how
     * often the last of them left above. So one who looks now and then cannot miss a moment at
     * which all had left.
     */
    static final class Inside {
        private static final int WORDS = 16;

        /** Words lie a cache line apart. */
        private static final int STRIDE = 8;

        private static final long TIMES_EMPTY = 1L << 32;

        private final AtomicLongArray words = new AtomicLongArray(WORDS * STRIDE);

        void enter() {
            words.getAndIncrement(mine());
        }

        void leave() {
            int at = mine();
            long word;
            long next;
            do {
                word = words.get(at);
                assert (int) word > 0 : "left without having entered";
                next = word - 1;
                if ((int) next == 0) {
                    next += TIMES_EMPTY;
                }
            } while (!words.compareAndSet(at, word, next));
        }

        private static int mine() {
            return (int) (Thread.currentThread().threadId() & WORDS - 1) * STRIDE;
        }

        /** Who is inside now. */
        long[] look() {
            long[] seen = new long[WORDS];
            for (int i = 0; i < WORDS; i++) {
                seen[i] = words.get(i * STRIDE);
            }
            return seen;
        }

        /** True once all who were inside when {@link #look} was called have left. */
        boolean haveLeft(long[] seen) {
            for (int i = 0; i < WORDS; i++) {
                long now = words.get(i * STRIDE);
                boolean wasEmpty = (int) seen[i] == 0;
                if (!wasEmpty && (int) now != 0 && now >>> 32 == seen[i] >>> 32) {
                    return false;
                }
            }
            return true;
        }
    }
}
