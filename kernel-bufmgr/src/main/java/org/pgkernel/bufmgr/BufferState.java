package org.pgkernel.bufmgr;

/**
 * The bits of a buffer's state word: the low half packed as PostgreSQL packs its state, above it
 * the generation of the buffer's tag:
 *
 * <pre>
 *  63                                32 31      22 21    18 17              0
 *  +-----------------------------------+----------+--------+-----------------+
 *  | generation 32                     | 10 flags | usage 4| pin count 18    |
 *  +-----------------------------------+----------+--------+-----------------+
 * </pre>
 *
 * The generation changes whenever the buffer gets another tag or loses its tag, and wraps. Only
 * {@link BufferDescriptors} sees it; everywhere else <em>state</em> means the low half, an int.
 * Zero is the word of a buffer that was never used. (PostgreSQL: buf_internals.h, which has no
 * generation.)
 */
final class BufferState {
    static final int REFCOUNT_ONE = 1;
    static final int REFCOUNT_MASK = (1 << 18) - 1;
    static final int USAGECOUNT_ONE = 1 << 18;
    static final int USAGECOUNT_MASK = 0xF << 18;
    static final int USAGECOUNT_SHIFT = 18;

    /** A page that is used often survives this many passes of the clock hand. */
    static final int MAX_USAGE_COUNT = 5;

    /** The header is locked: nobody else changes the word. */
    static final int LOCKED = 1 << 22;

    /** Must be written. */
    static final int DIRTY = 1 << 23;

    /** The block's bytes are the page's. */
    static final int VALID = 1 << 24;

    /** The tag is set and in the mapping table. */
    static final int TAG_VALID = 1 << 25;

    /** Somebody reads or writes the block; only one may. */
    static final int IO_IN_PROGRESS = 1 << 26;

    /** The last read or write failed. */
    static final int IO_ERROR = 1 << 27;

    /** Was marked dirty since its write began: stays dirty when the write ends. */
    static final int JUST_DIRTIED = 1 << 28;

    /** Somebody waits until his pin is the only one. */
    static final int PIN_COUNT_WAITER = 1 << 29;

    /** The checkpoint that runs has to write it. */
    static final int CHECKPOINT_NEEDED = 1 << 30;

    /** Of a logged relation: WAL before data. */
    static final int PERMANENT = 1 << 31;

    static final int FLAG_MASK = 0xFFC00000;

    /** Of the whole word. */
    static final long GENERATION_ONE = 1L << 32;

    /** Of the whole word: what is not the state. */
    static final long GENERATION_MASK = -1L << 32;

    private BufferState() {}

    static int refcount(int state) {
        return state & REFCOUNT_MASK;
    }

    static int usageCount(int state) {
        return (state & USAGECOUNT_MASK) >>> USAGECOUNT_SHIFT;
    }

    static boolean has(int state, int flags) {
        return (state & flags) == flags;
    }
}
