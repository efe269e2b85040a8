package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

/**
 * Looks up and pins without a lock: one compare-and-set for a page that is there. A miss, and
 * whatever looks odd, is left to the partition lock.
 *
 * <pre>
 *  reader, no lock                          changer, partition lock(s) exclusive
 *  R1 walk the bucket's chain to a buffer   C1 lock the header: CAS sets LOCKED
 *  R2 w = word(buffer), LOCKED not in w     C2 refcount suits? else unlock, give up
 *  R3 compare the tag, all five fields      C3 take the buffer out of its chain
 *  R4 CAS(w, w + a pin)                     C4 generation + 1; write the tag
 *                                           C5 unlock the header: store flags, LOCKED off
 *                                           C6 put the buffer into its new chain
 * </pre>
 *
 * <p><strong>What R4 proves.</strong> A word has LOCKED set from C1 to C5, and its generation is
 * another one after C5 than before C1. So a word that is {@code w} again at R4 (not locked, the
 * same generation) had no C4 since R2: every C1 to C5 of this buffer ended before R2 or begins
 * after R4.
 *
 * <ul>
 *   <li><em>Ended before R2.</em> C5 is a volatile store and R2 a volatile load of the same word.
 *       R2 sees it, or a CAS that came after it, so the reads of R3, which come later than R2, see
 *       what C4 wrote.
 *   <li><em>Begins after R4.</em> R3 sees nothing of it: C4's stores come after C1 for everybody
 *       (the store-store fence in {@link BufferDescriptors#setTag}), and R3's loads come before R4
 *       (the fence in {@link BufferDescriptors#pinUnchanged}). Had a load of R3 seen a store of C4,
 *       then R4 would have met LOCKED or the later generation, and failed.
 * </ul>
 *
 * So the tag read at R3 is the buffer's tag at R4, and with TAG_VALID in {@code w} the buffer is
 * the block's. From R4 on our pin holds it: C2 looks at the pin count under LOCKED, and R4 cannot
 * happen under LOCKED. If R4 comes first, C2 sees the pin and gives up (a victim) or waits (a
 * drop); if C1 comes first, R4 fails. The pin count and the usage count may differ between R2 and
 * R4 without harm to the tag; then the CAS fails, is tried with the new word, and needs no new look
 * at the tag while the generation is the same.
 *
 * <p><strong>How we came to the buffer does not matter.</strong> A walk without a lock may read
 * links while they change, follow a buffer into another chain, or meet it between C5 and C6, when
 * it is in no chain. A link is a 4-byte word, so what is read was written by somebody: a buffer's
 * number or an end. What is found is proved by R2 to R4 alone. What is not found proves nothing:
 * <em>a miss is never proof</em> and is looked up again under the partition lock, as is a walk of
 * more than {@link #MOST_STEPS} steps (it may have been led astray, or the chain is that long) and
 * a buffer that got another generation under our eyes. So there is no loop here that depends on
 * others but two: waiting for a header lock, which is held for a few instructions, and repeating R4
 * while others pin and unpin, each time because one of them got on.
 *
 * <p>A pin between C5 and C6 is right too: the buffer has its new tag and IO_IN_PROGRESS, its owner
 * has a pin, and a second reader waits for the page as any other.
 *
 * <p><strong>The generation wraps</strong> after 2^32 tags of one buffer. To be deceived a reader
 * must stand between R2 and R4 while one and the same buffer gets exactly a multiple of 2^32 other
 * tags and comes back to the same pin count, usage count and flags, the last change being one that
 * R3 has not seen. One change of a tag takes two partition locks and more than 50 ns, so this takes
 * more than 200 seconds in which one thread does not run while others run nothing but replacements
 * of this one buffer. We take that for impossible.
 *
 * <p>The walk passes by buffers with another block number without reading their words, so that most
 * lookups touch two cache lines of strangers at most: the link and the tag.
 */
non-sealed class OptimisticLookup extends PageLookup {
    /** A chain has one buffer on average; so many are odd. */
    static final int MOST_STEPS = 32;

    /** {@link #pinIfItHas} found another tag. */
    static final int OTHER_TAG = -2;

    /** {@link #pinIfItHas} saw the buffer's tag change. */
    static final int CHANGED = -3;

    private final BufferDescriptors descriptors;
    private final BufferTable table;
    private final PartitionLockLookup locked;

    OptimisticLookup(BufferDescriptors descriptors, BufferTable table, PartitionLockLookup locked) {
        this.descriptors = descriptors;
        this.table = table;
        this.locked = locked;
    }

    @Override
    final int pin(int hash, int spc, int db, int rel, int fork, int block, int most) {
        int buffer = table.firstUnlocked(hash);
        for (int steps = 0; buffer >= 0 && steps < MOST_STEPS; steps++) {
            if (descriptors.block(buffer) == block) {
                int found = pinIfItHas(buffer, spc, db, rel, fork, block, most);
                if (found >= 0) {
                    return found;
                }
                if (found == CHANGED) {
                    break;
                }
            }
            buffer = table.nextUnlocked(buffer);
        }
        return pinLocked(hash, spc, db, rel, fork, block, most);
    }

    /**
     * Pins the buffer if it holds the block: R2 to R4.
     *
     * @return as {@link #pin}; {@link #OTHER_TAG}, {@link #CHANGED}
     */
    int pinIfItHas(int buffer, int spc, int db, int rel, int fork, int block, int most) {
        long word = descriptors.unlockedWord(buffer);
        if ((word & TAG_VALID) == 0 || !descriptors.hasTag(buffer, spc, db, rel, fork, block)) {
            return OTHER_TAG;
        }
        long generation = word & GENERATION_MASK;
        while (!descriptors.pinUnchanged(buffer, word, most)) {
            word = descriptors.unlockedWord(buffer);
            if ((word & GENERATION_MASK) != generation) {
                return CHANGED;
            }
        }
        return answer(buffer, (int) word);
    }

    /** What has not been found may be there all the same. */
    int pinLocked(int hash, int spc, int db, int rel, int fork, int block, int most) {
        return locked.pin(hash, spc, db, rel, fork, block, most);
    }
}
