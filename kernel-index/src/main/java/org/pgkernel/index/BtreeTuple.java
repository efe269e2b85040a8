package org.pgkernel.index;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;

/**
 * What a B-tree makes of {@code t_tid} when {@link IndexTuple#ALT_TID} is set.
 *
 * <pre>
 *   pivot         block = downlink (or top parent), offset = number of key attributes
 *   posting list  offset = 0x2000 | number of heap tids, block = where in the tuple they begin; 6 bytes each, ascending
 * </pre>
 *
 * (PostgreSQL: nbtree.h, nbtdedup.c.)
 */
final class BtreeTuple {
    static final int OFFSET_MASK = 0x0FFF;
    static final int IS_POSTING = 0x2000;

    private BtreeTuple() {}

    static boolean isPosting(DirectBuffer buffer, int at) {
        return (IndexTuple.info(buffer, at) & IndexTuple.ALT_TID) != 0
                && (IndexTuple.tidOffset(buffer, at) & IS_POSTING) != 0;
    }

    static boolean isPivot(DirectBuffer buffer, int at) {
        return (IndexTuple.info(buffer, at) & IndexTuple.ALT_TID) != 0
                && (IndexTuple.tidOffset(buffer, at) & IS_POSTING) == 0;
    }

    static int postingCount(DirectBuffer buffer, int at) {
        return IndexTuple.tidOffset(buffer, at) & OFFSET_MASK;
    }

    /** Where the heap tids begin, from the tuple's first byte. */
    static int postingOffset(DirectBuffer buffer, int at) {
        return IndexTuple.tidBlock(buffer, at);
    }

    static void setPosting(MutableDirectBuffer buffer, int at, int count, int postingOffset) {
        IndexTuple.setInfo(buffer, at, IndexTuple.info(buffer, at) | IndexTuple.ALT_TID);
        IndexTuple.setTidOffset(buffer, at, count | IS_POSTING);
        IndexTuple.setTidBlock(buffer, at, postingOffset);
    }

    /** Bytes of a tuple's key part, the header included and heap tids of a posting list not. */
    static int keySize(DirectBuffer buffer, int at) {
        return isPosting(buffer, at) ? postingOffset(buffer, at) : IndexTuple.size(buffer, at);
    }

    /**
     * The key of half-dead pages: no key at all, but a link to the top of the subtree being
     * deleted. (PostgreSQL: BTreeTupleSetTopParent.)
     */
    static void formTopParent(MutableDirectBuffer buffer, int at, int topParent) {
        buffer.setMemory(at, IndexTuple.HEADER_SIZE, (byte) 0);
        IndexTuple.setTidBlock(buffer, at, topParent);
        IndexTuple.setInfo(buffer, at, IndexTuple.HEADER_SIZE | IndexTuple.ALT_TID);
    }

    /** Throws unless the tuple is a posting list that lies within its own size. */
    static void checkPosting(DirectBuffer buffer, int at) {
        if (!isPosting(buffer, at)) {
            throw new DamagedDataException("an index tuple is not a posting list");
        }
        int offset = postingOffset(buffer, at);
        if (offset < IndexTuple.HEADER_SIZE
                || offset > IndexTuple.size(buffer, at)
                || offset + postingCount(buffer, at) * IndexTuple.TID_SIZE
                        > IndexTuple.size(buffer, at)) {
            throw new DamagedDataException("a posting list runs past its tuple");
        }
    }

    /**
     * Makes room at {@code position} of a posting list for a new tid that lies within its range:
     * the list changes in place and keeps its size, the new tid moves in, and the highest tid of
     * the list moves out into {@code newItem}.
     *
     * @param posting checked with {@link #checkPosting}
     * @throws DamagedDataException when the position is not inside the list; nothing has changed
     *     then. (PostgreSQL: _bt_swap_posting.)
     */
    static void swapPosting(
            MutableDirectBuffer newItem,
            int newItemAt,
            MutableDirectBuffer posting,
            int postingAt,
            int position,
            MutableDirectBuffer scratch) {
        int count = postingCount(posting, postingAt);
        if (position <= 0 || position >= count) {
            throw new DamagedDataException(
                    "posting list tuple with "
                            + count
                            + " items cannot be split at offset "
                            + position);
        }
        int list = postingAt + postingOffset(posting, postingAt);
        int gap = list + position * IndexTuple.TID_SIZE;
        int highest = list + (count - 1) * IndexTuple.TID_SIZE;
        int moved = highest - gap;
        IndexTuple.copyTid(scratch, 0, posting, highest);
        posting.putBytes(gap + IndexTuple.TID_SIZE, posting, gap, moved);
        IndexTuple.copyTid(posting, gap, newItem, newItemAt);
        IndexTuple.copyTid(newItem, newItemAt, scratch, 0);
    }

    /**
     * Forms a posting list tuple, or a plain one for a single tid.
     *
     * @param base the key is taken from it
     * @param tids {@code count} heap tids from 0 on
     * @return bytes of the tuple formed in {@code to} at 0. (PostgreSQL: _bt_form_posting.)
     */
    static int formPosting(
            MutableDirectBuffer to, DirectBuffer base, int baseAt, DirectBuffer tids, int count) {
        int keySize = keySize(base, baseAt);
        int size = formKey(to, base, baseAt, keySize, count);
        if (count > 1) {
            to.putBytes(keySize, tids, 0, count * IndexTuple.TID_SIZE);
        } else {
            IndexTuple.copyTid(to, 0, tids, 0);
        }
        return size;
    }

    /**
     * Forms what is left of a posting list after some tids were removed.
     *
     * @param original checked with {@link #checkPosting}
     * @param removed {@code removedCount} positions in the list, 2 bytes each, ascending
     * @return bytes of the tuple formed in {@code to} at 0. (PostgreSQL: _bt_update_posting.)
     */
    static int updatePosting(
            MutableDirectBuffer to,
            DirectBuffer original,
            int originalAt,
            DirectBuffer removed,
            int removedAt,
            int removedCount) {
        int count = postingCount(original, originalAt);
        int left = count - removedCount;
        if (left <= 0 || removedCount <= 0) {
            throw new DamagedDataException(
                    "posting list tuple with " + count + " items cannot lose " + removedCount);
        }
        int keySize = postingOffset(original, originalAt);
        int size = formKey(to, original, originalAt, keySize, left);
        int into = left > 1 ? keySize : 0;
        int next = 0;
        int kept = 0;
        for (int i = 0; i < count; i++) {
            if (next < removedCount && (removed.getShort(removedAt + next * 2) & 0xFFFF) == i) {
                next++;
            } else if (kept++ < left) {
                IndexTuple.copyTid(
                        to, into, original, originalAt + keySize + i * IndexTuple.TID_SIZE);
                into += IndexTuple.TID_SIZE;
            }
        }
        if (next != removedCount) {
            throw new DamagedDataException("positions to remove from a posting list are wrong");
        }
        return size;
    }

    private static int formKey(
            MutableDirectBuffer to, DirectBuffer base, int baseAt, int keySize, int count) {
        int size = count > 1 ? Page.maxAlign(keySize + count * IndexTuple.TID_SIZE) : keySize;
        if (size > to.capacity() || size > IndexTuple.SIZE_MASK || count > OFFSET_MASK) {
            throw new DamagedDataException("an index tuple would be too large");
        }
        to.setMemory(0, size, (byte) 0);
        to.putBytes(0, base, baseAt, keySize);
        IndexTuple.setInfo(to, 0, IndexTuple.info(base, baseAt) & ~IndexTuple.SIZE_MASK | size);
        if (count > 1) {
            setPosting(to, 0, count, keySize);
        } else {
            IndexTuple.setInfo(to, 0, IndexTuple.info(to, 0) & ~IndexTuple.ALT_TID);
        }
        return size;
    }
}
