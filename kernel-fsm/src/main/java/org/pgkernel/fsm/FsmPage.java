package org.pgkernel.fsm;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.pgkernel.base.Page;

/**
 * A page of the free space map: a binary tree of one-byte categories in an array, each inner node
 * the greater of its children. The leaves are the page's slots.
 *
 * <pre>
 *    0 page header, 24
 *   24 fp_next_slot 4   where the next search begins, a hint
 *   28 inner nodes  4095, root first
 * 4123 leaves       4069 (the last level is not full)
 * 8192
 * </pre>
 *
 * The caller holds the page's exclusive lock where a method changes it. (PostgreSQL:
 * fsm_internals.h, fsmpage.c.)
 */
final class FsmPage {
    static final int NEXT_SLOT_OFFSET = Page.HEADER_SIZE;
    static final int NODES_OFFSET = NEXT_SLOT_OFFSET + 4;
    static final int NODES = Page.SIZE - NODES_OFFSET;
    static final int INNER_NODES = Page.SIZE / 2 - 1;

    /** Leaves of a page. (PostgreSQL: SlotsPerFSMPage.) */
    static final int SLOTS = NODES - INNER_NODES;

    /** {@link #search} found no slot. */
    static final int NONE = -1;

    /** {@link #search} found a tree that does not hold together. */
    static final int TORN = -2;

    private FsmPage() {}

    /** The category of a slot, 0 to 255. (PostgreSQL: fsm_get_avail.) */
    static int avail(DirectBuffer page, int slot) {
        assert slot >= 0 && slot < SLOTS;
        return node(page, INNER_NODES + slot);
    }

    /** The greatest category of the page. (PostgreSQL: fsm_get_max_avail.) */
    static int maxAvail(DirectBuffer page) {
        return node(page, 0);
    }

    /**
     * Sets a slot and its ancestors as far as they change.
     *
     * <p>FSM-2: a value above the root afterwards means that the tree was torn; it is rebuilt.
     *
     * @return false when nothing had to change. (PostgreSQL: fsm_set_avail.)
     */
    static boolean setAvail(MutableDirectBuffer page, int slot, int category) {
        assert slot >= 0 && slot < SLOTS;
        int at = INNER_NODES + slot;
        if (node(page, at) == category && category <= node(page, 0)) {
            return false;
        }
        setNode(page, at, category);
        do {
            at = (at - 1) / 2;
            int value = greaterChild(page, at);
            if (node(page, at) == value) {
                break;
            }
            setNode(page, at, value);
        } while (at > 0);
        if (category > node(page, 0)) {
            rebuild(page);
        }
        return true;
    }

    /**
     * A slot with at least this category: the first at or right of {@code fp_next_slot}, or else
     * from the left again. Climbs from there, each step one node to the right and up, so that what
     * is looked at doubles; then goes down, to the left where it can. A shared lock is enough.
     *
     * @param minCategory from 1 on
     * @return {@link #NONE}; {@link #TORN} when a node promised what neither child has: the caller
     *     rebuilds the page and asks again. (PostgreSQL: fsm_search_avail.)
     */
    static int search(DirectBuffer page, int minCategory) {
        if (node(page, 0) < minCategory) {
            return NONE;
        }
        int next = page.getInt(NEXT_SLOT_OFFSET);
        int at = INNER_NODES + (next < 0 || next >= SLOTS ? 0 : next);
        while (at > 0 && node(page, at) < minCategory) {
            at = (rightNeighbour(at) - 1) / 2;
        }
        while (at < INNER_NODES) {
            int left = 2 * at + 1;
            if (left < NODES && node(page, left) >= minCategory) {
                at = left;
            } else if (left + 1 < NODES && node(page, left + 1) >= minCategory) {
                at = left + 1;
            } else {
                return TORN;
            }
        }
        return at - INNER_NODES;
    }

    /** On the same level; after the last comes the first. */
    private static int rightNeighbour(int at) {
        int next = at + 1;
        boolean firstOfNextLevel = (next & next + 1) == 0;
        return firstOfNextLevel ? at / 2 : next;
    }

    /** Where the next search begins. A hint: any lock will do, and the page is not dirty for it. */
    static void setNextSlot(MutableDirectBuffer page, int slot) {
        page.putInt(NEXT_SLOT_OFFSET, slot);
    }

    /**
     * Clears the slots from {@code firstSlot} on. @return false when they were clear. (PostgreSQL:
     * fsm_truncate_avail.)
     */
    static boolean truncateAvail(MutableDirectBuffer page, int firstSlot) {
        boolean changed = false;
        for (int at = INNER_NODES + firstSlot; at < NODES; at++) {
            if (node(page, at) != 0) {
                changed = true;
                setNode(page, at, 0);
            }
        }
        if (changed) {
            rebuild(page);
        }
        return changed;
    }

    /** Computes every inner node anew. (PostgreSQL: fsm_rebuild_page.) */
    static void rebuild(MutableDirectBuffer page) {
        for (int at = INNER_NODES - 1; at >= 0; at--) {
            int value = greaterChild(page, at);
            if (node(page, at) != value) {
                setNode(page, at, value);
            }
        }
    }

    /** The last inner nodes have one child or none: the leaf level is not full. */
    private static int greaterChild(DirectBuffer page, int at) {
        int left = 2 * at + 1;
        int value = left < NODES ? node(page, left) : 0;
        return left + 1 < NODES ? Math.max(value, node(page, left + 1)) : value;
    }

    private static int node(DirectBuffer page, int at) {
        return page.getByte(NODES_OFFSET + at) & 0xFF;
    }

    private static void setNode(MutableDirectBuffer page, int at, int value) {
        page.putByte(NODES_OFFSET + at, (byte) value);
    }
}
