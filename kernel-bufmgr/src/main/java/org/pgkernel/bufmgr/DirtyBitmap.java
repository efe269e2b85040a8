package org.pgkernel.bufmgr;

import org.agrona.concurrent.AtomicBuffer;

/**
 * Which buffers may be dirty: one bit a buffer, and above it two levels of summary, so that finding
 * the dirty ones costs in proportion to them and not to the pool. The descriptor's flag decides; a
 * bit may be set for a clean buffer, but once {@code markDirty} has returned, the bit of a dirty
 * buffer is set, and can be found from the top.
 *
 * <pre>
 *  tops       64 bits: which of 64 groups are not empty                        (131,072 buffers a word)
 *  groups     lock bit 63 | 31 unused | 32 bits: which of 32 words are not 0     (2,048 buffers a word)
 *  words      64 bits: which of 64 buffers may be dirty
 * </pre>
 *
 * At 13,107,200 buffers that is 1.6 MB of words, 51 kB of groups and 100 tops, which is all that a
 * search looks at when nothing is dirty.
 *
 * <p>What holds at every instant: <em>a word that is not 0 has its bit set in its group, and the
 * group has its bit set in its top</em>. So a search that goes from the top down and reads each
 * level once meets every bit that was set before it began and is not cleared meanwhile: all three
 * were set all the time. Nothing has to be looked at again.
 *
 * <p>This is kept as follows. A word goes from 0 to not 0, or back, only with its group's lock bit
 * held; so do all changes of the group's bits. Upwards the order is top, group, word; downwards
 * word, then group and top. Between two values other than 0 a word changes by one CAS without the
 * lock: that its group knows it follows from its not being 0, at the instant of the CAS. Hence who
 * finds his bit set, or sets it beside others', returns without looking at the summary. (Were the
 * summary cleared first and looked at again afterwards, without the lock, there would be an instant
 * in which a bit that somebody had long set could not be found.)
 *
 * <p>The lock bit is held for a few instructions, under a header lock ({@link #clear}) or alone;
 * nothing is taken and nothing waits under it. It is needed for the first and the last dirty buffer
 * of 64 only. (Not in PostgreSQL, whose checkpoint looks at every descriptor.)
 */
class DirtyBitmap {
    static final int WORD_BUFFERS_SHIFT = 6;
    static final int GROUP_WORDS_SHIFT = 5;
    static final int TOP_GROUPS_SHIFT = 6;
    private static final int GROUP_BUFFERS_SHIFT = WORD_BUFFERS_SHIFT + GROUP_WORDS_SHIFT;
    private static final int TOP_BUFFERS_SHIFT = GROUP_BUFFERS_SHIFT + TOP_GROUPS_SHIFT;

    static final long GROUP_LOCKED = 1L << 63;
    private static final long GROUP_BITS = (1L << (1 << GROUP_WORDS_SHIFT)) - 1;

    /** Groups looked at for an estimate, when more than these are not empty. */
    static final int SAMPLED_GROUPS = 128;

    /** Of these groups a word each is looked at, to tell how many of its bits are set. */
    private static final int SAMPLED_WORDS = 16;

    /** Changed by CAS; to and from 0 under the group's lock bit only. */
    final AtomicBuffer memory;

    /** Where the groups begin. Their low bits are changed by who has set the lock bit by CAS. */
    private final int groups;

    /** Where the tops begin. Changed by CAS by who holds a group's lock bit. */
    private final int tops;

    private final int groupCount;
    private final int topCount;

    /**
     * @param memory {@link #bytes} zeros
     */
    DirtyBitmap(AtomicBuffer memory, int nbuffers) {
        this.memory = memory;
        groups = count(nbuffers, WORD_BUFFERS_SHIFT) << 3;
        groupCount = count(nbuffers, GROUP_BUFFERS_SHIFT);
        tops = groups + (groupCount << 3);
        topCount = count(nbuffers, TOP_BUFFERS_SHIFT);
    }

    static int bytes(int nbuffers) {
        return count(nbuffers, WORD_BUFFERS_SHIFT)
                        + count(nbuffers, GROUP_BUFFERS_SHIFT)
                        + count(nbuffers, TOP_BUFFERS_SHIFT)
                << 3;
    }

    private static int count(int nbuffers, int shift) {
        return (nbuffers - 1 >>> shift) + 1;
    }

    /** After the descriptor's flag. */
    void set(int buffer) {
        int offset = wordOffset(buffer);
        long bit = 1L << buffer;
        for (; ; ) {
            long word = memory.getLongVolatile(offset);
            if ((word & bit) != 0) {
                return;
            }
            if (word == 0) {
                if (setFirst(buffer, offset, bit)) {
                    return;
                }
            } else if (memory.compareAndSetLong(offset, word, word | bit)) {
                return;
            }
        }
    }

    /** Makes the word not 0. @return false when it is so already */
    boolean setFirst(int buffer, int offset, long bit) {
        int groupOffset = groupOffset(buffer);
        long group = lockGroup(groupOffset);
        if (memory.getLongVolatile(offset) != 0) {
            memory.putLongVolatile(groupOffset, group);
            return false;
        }
        long raised = group | groupBit(buffer);
        if (group == 0) {
            setTop(buffer);
        }
        memory.putLongVolatile(groupOffset, raised | GROUP_LOCKED);
        memory.putLongVolatile(offset, bit); // nobody else changes a word that is 0
        memory.putLongVolatile(groupOffset, raised);
        return true;
    }

    /** Only under the buffer's header lock, with the buffer clean or about to be. */
    void clear(int buffer) {
        int offset = wordOffset(buffer);
        long bit = 1L << buffer;
        for (; ; ) {
            long word = memory.getLongVolatile(offset);
            if ((word & bit) == 0) {
                return;
            }
            if (word == bit) {
                if (clearLast(buffer, offset, bit)) {
                    return;
                }
            } else if (memory.compareAndSetLong(offset, word, word & ~bit)) {
                return;
            }
        }
    }

    /** Makes the word 0. @return false when it has other bits meanwhile */
    boolean clearLast(int buffer, int offset, long bit) {
        int groupOffset = groupOffset(buffer);
        long group = lockGroup(groupOffset);
        boolean cleared = memory.compareAndSetLong(offset, bit, 0);
        if (cleared) {
            group &= ~groupBit(buffer);
            if (group == 0) {
                clearTop(buffer);
            }
        }
        memory.putLongVolatile(groupOffset, group);
        return cleared;
    }

    /**
     * @return the group's bits, now ours to change; put back without the lock bit
     */
    long lockGroup(int groupOffset) {
        for (int spins = 0; ; spins++) {
            long group = memory.getLongVolatile(groupOffset);
            if ((group & GROUP_LOCKED) == 0
                    && memory.compareAndSetLong(groupOffset, group, group | GROUP_LOCKED)) {
                return group;
            }
            BufferDescriptors.pause(spins);
        }
    }

    void setTop(int buffer) {
        int offset = topOffset(buffer);
        long bit = 1L << (buffer >>> GROUP_BUFFERS_SHIFT);
        long top;
        do {
            top = memory.getLongVolatile(offset);
        } while (!memory.compareAndSetLong(offset, top, top | bit));
    }

    void clearTop(int buffer) {
        int offset = topOffset(buffer);
        long bit = 1L << (buffer >>> GROUP_BUFFERS_SHIFT);
        long top;
        do {
            top = memory.getLongVolatile(offset);
        } while (!memory.compareAndSetLong(offset, top, top & ~bit));
    }

    boolean isSet(int buffer) {
        return (memory.getLongVolatile(wordOffset(buffer)) & 1L << buffer) != 0;
    }

    /** How many groups are not empty; 0: of what was set before this call nothing stays set. */
    int groupsNotEmpty() {
        int notEmpty = 0;
        for (int top = 0; top < topCount; top++) {
            notEmpty += Long.bitCount(memory.getLongVolatile(tops + (top << 3)));
        }
        return notEmpty;
    }

    /** True if a search from the top meets the buffer's bit. */
    boolean isReachable(int buffer) {
        return (memory.getLongVolatile(topOffset(buffer)) & 1L << (buffer >>> GROUP_BUFFERS_SHIFT))
                        != 0
                && (memory.getLongVolatile(groupOffset(buffer)) & groupBit(buffer)) != 0
                && isSet(buffer);
    }

    /**
     * The first set bit at or after {@code from} and below {@code end}, or -1. Called again with
     * the last result plus 1 it meets every bit that was set before the first call and stays so.
     */
    int next(int from, int end) {
        if (from >= end) {
            return -1;
        }
        // The rest of a word that has just been looked at; else from the top.
        long rest = memory.getLongVolatile(wordOffset(from)) & -1L << from;
        int number = from >>> WORD_BUFFERS_SHIFT;
        while (rest == 0) {
            number = nextWord(number + 1);
            if (number < 0 || number << WORD_BUFFERS_SHIFT >= end) {
                return -1;
            }
            rest = memory.getLongVolatile(number << 3);
        }
        int found = (number << WORD_BUFFERS_SHIFT) + Long.numberOfTrailingZeros(rest);
        return found < end ? found : -1;
    }

    /** The first word from {@code number} on that its group says is not 0, or -1. */
    private int nextWord(int number) {
        int group = number >>> GROUP_WORDS_SHIFT;
        int within = number & (1 << GROUP_WORDS_SHIFT) - 1;
        if (within != 0) {
            long bits = group(group) & -1L << within;
            if (bits != 0) {
                return (group << GROUP_WORDS_SHIFT) + Long.numberOfTrailingZeros(bits);
            }
            group++;
        }
        while ((group = nextGroup(group)) >= 0) {
            long bits = group(group);
            if (bits != 0) {
                return (group << GROUP_WORDS_SHIFT) + Long.numberOfTrailingZeros(bits);
            }
            group++;
        }
        return -1;
    }

    private long group(int number) {
        return memory.getLongVolatile(groups + (number << 3)) & GROUP_BITS;
    }

    /** The first group from {@code number} on that its top says is not empty, or -1. */
    private int nextGroup(int number) {
        int top = number >>> TOP_GROUPS_SHIFT;
        if (top >= topCount) {
            return -1;
        }
        long bits = memory.getLongVolatile(tops + (top << 3)) & -1L << number;
        while (bits == 0) {
            if (++top == topCount) {
                return -1;
            }
            bits = memory.getLongVolatile(tops + (top << 3));
        }
        return (top << TOP_GROUPS_SHIFT) + Long.numberOfTrailingZeros(bits);
    }

    /**
     * About how many words are not 0, in the upper half, and about how many bits are set, in the
     * lower: counted when few groups are not empty, else from a sample of the groups. For the
     * choice between right ways only.
     */
    long estimate() {
        int notEmpty = groupsNotEmpty();
        boolean all = notEmpty <= SAMPLED_GROUPS;
        int apart = notEmpty <= SAMPLED_WORDS ? 1 : SAMPLED_GROUPS / SAMPLED_WORDS;
        long words = 0;
        long bits = 0;
        long seen = 0;
        int group = 0;
        for (int i = 0; i < SAMPLED_GROUPS; i++, group++) {
            group = all ? nextGroup(group) : (int) ((long) i * groupCount / SAMPLED_GROUPS);
            if (group < 0) {
                break;
            }
            long inGroup = group(group);
            int wordsInGroup = Long.bitCount(inGroup);
            words += wordsInGroup;
            if (wordsInGroup != 0 && i % apart == 0) {
                // For its group's words: a run's first group may have a word with few bits only.
                int number = (group << GROUP_WORDS_SHIFT) + middleBit(inGroup);
                bits += (long) wordsInGroup * Long.bitCount(memory.getLongVolatile(number << 3));
                seen += wordsInGroup;
            }
        }
        if (!all) {
            words = words * groupCount / SAMPLED_GROUPS;
        }
        long each = seen == 0 ? 1 : Math.max(1, (bits + seen / 2) / seen);
        return words << 32 | words * each;
    }

    /** Not the first or last one: a run of dirty buffers has words there that it fills in part. */
    private static int middleBit(long bits) {
        long left = bits;
        for (int i = Long.bitCount(bits) / 2; i > 0; i--) {
            left &= left - 1;
        }
        return Long.numberOfTrailingZeros(left);
    }

    private static int wordOffset(int buffer) {
        return buffer >>> WORD_BUFFERS_SHIFT << 3;
    }

    int groupOffset(int buffer) {
        return groups + (buffer >>> GROUP_BUFFERS_SHIFT << 3);
    }

    static long groupBit(int buffer) {
        return 1L << (buffer >>> WORD_BUFFERS_SHIFT & (1 << GROUP_WORDS_SHIFT) - 1);
    }

    private int topOffset(int buffer) {
        return tops + (buffer >>> TOP_BUFFERS_SHIFT << 3);
    }
}
