package org.pgkernel.smgr;

import org.pgkernel.base.BlockNumber;

/**
 * What this process remembers of a fork's size: one word, shared by everybody who has the relation
 * open. Read without a lock, written under the fork's monitor (its extension lock).
 *
 * <p>The word is a {@link ForkSize}: it says itself whether it was proof when it was written, so
 * that a hint of the time before recovery can never pass for proof. An answer is accurate if the
 * size was the file's at some moment between the question and the answer. Why that holds (SMGR-4),
 * whoever comes in between:
 *
 * <ul>
 *   <li><b>Extension.</b> The file grows first, then the word. Who asks in between gets the old
 *       size, as if he had asked before. Two extensions follow each other under the monitor, so the
 *       word never goes back.
 *   <li><b>Extension that fails.</b> The word becomes unknown before the monitor is left; what did
 *       get into the file is asked of the file.
 *   <li><b>Truncation.</b> The word is unknown from before the first file is cut until all are; it
 *       stays unknown if one could not be. {@code nblocks} waits for the monitor meanwhile.
 *   <li><b>A write at or past the end</b> (recovery, or a hole filled late) holds no monitor. It
 *       comes to {@link #wrote} after the file has grown, whenever the word does not {@link #covers
 *       cover} the block, an unknown word included: a probe that looked at the file before the
 *       write may be about to note what it saw. Either it has, and the word is taken back, or it
 *       will look after the write.
 *   <li><b>Closing a handle</b> waits for those inside its monitors, under the manager's monitor,
 *       without which there is no new handle: what the new one reads of the files contains what
 *       they did. A write, which is not inside, tells the new handle, too.
 *   <li><b>Removing and making anew.</b> The word is unknown before the files go. Outside redo a
 *       new file is new (O_EXCL), so empty; in redo it may be an old one and stays unknown.
 *   <li><b>Recovery begins or ends.</b> The reader looks at the mode first, then at the word. If
 *       the mode was "proof", a word with the flag was right then or written later by a process
 *       that still was alone; hints lack the flag.
 * </ul>
 *
 * <p>That the answer stays right is the asker's business: a lock on the relation, or being redo.
 * Not final for the sake of faulty versions in tests. (PostgreSQL: smgr_cached_nblocks, smgr.c.)
 */
class RememberedSize {
    /** Read by anybody, written under the fork's monitor. */
    private volatile long word = ForkSize.UNKNOWN;

    /** The blocks that the word tells, proof or hint; {@link BlockNumber#INVALID}: none. */
    final int blocks() {
        return ForkSize.blocks(word);
    }

    /** The size, accurate only if it is proof now. Takes no lock. */
    long answer(StorageManager manager) {
        boolean proofNow = manager.sizesAccurate();
        long now = word;
        if (!ForkSize.isKnown(now)) {
            return ForkSize.UNKNOWN;
        }
        return proofNow ? now : ForkSize.hint(ForkSize.blocks(now));
    }

    /** The caller looked at the files, or knows what he made of them. Under the monitor. */
    void is(int blocks, boolean proof) {
        word = proof ? ForkSize.accurate(blocks) : ForkSize.hint(blocks);
    }

    /** Nothing is known from here on. Under the monitor. */
    void forget() {
        word = ForkSize.UNKNOWN;
    }

    /** The files are about to be cut. Under the monitor. */
    void cutting() {
        forget();
    }

    /** The files were cut to this size. Under the monitor. */
    void cut(int blocks, boolean proof) {
        is(blocks, proof);
    }

    /**
     * The size once {@code count} blocks from {@code block} on are there; {@link
     * BlockNumber#INVALID} when that cannot be told. Asked before the file grows, noted after it
     * did. (PostgreSQL: smgrextend.)
     */
    int grown(int block, int count, boolean shared) {
        int known = blocks();
        if (count == 0 || known == BlockNumber.INVALID) {
            return known;
        }
        if (known == block) {
            return block + count;
        }
        if (!shared) {
            return BlockNumber.INVALID;
        }
        return Integer.compareUnsigned(block + count, known) > 0 ? block + count : known;
    }

    /** The file may have grown in part. Under the monitor. */
    void extensionFailed() {
        forget();
    }

    /** True if writing the block cannot have changed the size. Takes no lock. */
    boolean covers(int block) {
        int known = blocks();
        return known != BlockNumber.INVALID && Integer.compareUnsigned(block, known) < 0;
    }

    /** A block was written that the word did not cover. Under the monitor. */
    final void wrote(int block) {
        if (!covers(block)) {
            forget();
        }
    }
}
