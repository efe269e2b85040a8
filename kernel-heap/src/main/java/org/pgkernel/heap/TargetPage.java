package org.pgkernel.heap;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Finds the page that a new tuple goes to: the one that took the last, one that the free space map
 * knows, the last one of the file, a new one. None of these is more than a guess until the page is
 * locked: then its room is looked at.
 *
 * <p>An update brings the page of the old version, and both are locked in the order of their blocks
 * (C20), whatever buffers they are in. A page that looks all-visible has its page of the visibility
 * map pinned before it is locked, since that may take a read; when the flag was set in between the
 * locks are given up, the map's page is pinned, and the locks are taken again.
 *
 * <p>A page that was added is ours only while its lock is held from the start. With two pages that
 * is not always possible, so its room is looked at again, and if others were quicker the search
 * goes on (C19). The page is formatted by whoever locks it first.
 *
 * <p>When this throws, pins and locks are left to the innermost buffer scope. One backend's.
 * (PostgreSQL: RelationGetBufferForTuple, hio.c.)
 */
final class TargetPage {
    static final int NONE = -1;

    /**
     * So much of a page may be taken by line pointers and it still counts as empty, bytes: a large
     * tuple may go there whatever the fillfactor. (PostgreSQL: nearlyEmptyFreeSpace.)
     */
    private static final int NEARLY_EMPTY =
            HeapTupleHeader.MAX_TUPLE_SIZE
                    - PageItems.MAX_HEAP_TUPLES_PER_PAGE / 8 * Page.ITEM_ID_SIZE;

    private final HeapBackend backend;
    private final BackendBuffers buffers;
    private final UnsafeBuffer otherPage = new UnsafeBuffer(0L, 0);
    private final int[] added = new int[1];
    private final int[] extra = new int[64];

    /** The page that was found, until the next search. */
    final UnsafeBuffer page = new UnsafeBuffer(0L, 0);

    /** Pinned page of the visibility map for the page found, or -1. */
    private int map = NONE;

    /** The same for the other page. */
    private int otherMap = NONE;

    TargetPage(HeapBackend backend) {
        this.backend = backend;
        buffers = backend.buffers;
    }

    /**
     * A page for one tuple.
     *
     * @param length the tuple's bytes
     * @param bulk null when this is not one of many inserts
     * @return its buffer, pinned and exclusively locked, in {@link #page}; afterwards {@link
     *     #releaseMaps}
     * @throws RefusedException when no page could take the tuple
     */
    int find(HeapRelation relation, int length, BulkInsert bulk) {
        return find(relation, length, NONE, NONE, bulk);
    }

    /**
     * The same for the new version of an updated tuple.
     *
     * @param other buffer with the old version, pinned, not locked; locked exclusively on return,
     *     and perhaps the one that is returned
     * @param otherMap pinned page of the visibility map for it, or -1; taken over
     */
    int find(HeapRelation relation, int length, int other, int otherMap) {
        return find(relation, length, other, otherMap, null);
    }

    private int find(
            HeapRelation relation, int length, int other, int mapOfOther, BulkInsert bulk) {
        int size = checkedSize(relation, length);
        backend.space.rows++;
        int wanted = wanted(relation, size);
        otherMap = mapOfOther;
        int block = firstTarget(relation, wanted, bulk);
        for (; ; ) {
            int buffer = search(relation, block, wanted, other, bulk);
            if (buffer == NONE) {
                buffer = extend(relation, size, wanted, other, bulk);
            }
            if (buffer >= 0) {
                backend.state(relation).targetBlock = backend.pool.block(buffer);
                backend.freeSpace.forget();
                if (bulk != null) {
                    bulk.keep(buffer);
                }
                return buffer;
            }
            block = backend.state(relation).targetBlock;
        }
    }

    static int checkedSize(HeapRelation relation, int length) {
        int size = Page.maxAlign(length);
        if (size > HeapTupleHeader.MAX_TUPLE_SIZE) {
            throw new RefusedException(
                    "row is too big: size "
                            + size
                            + ", maximum size "
                            + HeapTupleHeader.MAX_TUPLE_SIZE
                            + " rel="
                            + relation);
        }
        return size;
    }

    /** Room that the page must have: what fillfactor reserves counts, unless it is empty. */
    private static int wanted(HeapRelation relation, int size) {
        int wanted = size + relation.reservedSpace();
        return wanted > NEARLY_EMPTY ? Math.max(size, NEARLY_EMPTY) : wanted;
    }

    private int firstTarget(HeapRelation relation, int wanted, BulkInsert bulk) {
        SmgrRelation storage = relation.storage();
        int kept = bulk == null ? NONE : bulk.current(relation);
        int block = kept == NONE ? backend.state(relation).targetBlock : backend.pool.block(kept);
        int blocks = storage.nblocks(ForkNumber.MAIN);
        if (block != BlockNumber.INVALID && Integer.compareUnsigned(block, blocks) >= 0) {
            block = BlockNumber.INVALID; // the relation was cut
        }
        if (block != BlockNumber.INVALID) {
            return block;
        }
        backend.space.searches++;
        return backend.freeSpace.firstPage(buffers, storage, blocks, wanted);
    }

    /**
     * @return a buffer with room, or -1: the relation must grow
     */
    private int search(HeapRelation relation, int from, int wanted, int other, BulkInsert bulk) {
        SmgrRelation storage = relation.storage();
        for (int block = from; block != BlockNumber.INVALID; ) {
            backend.space.pagesTried++;
            boolean same = other != NONE && backend.pool.block(other) == block;
            int buffer = same ? other : read(storage, block, bulk);
            backend.pool.wrap(buffer, page);
            if (Page.isAllVisible(page)) {
                map = backend.visibilityMap.pin(buffers, storage, block, map);
            }
            lock(buffer, block, other);
            pinMaps(storage, buffer, block, other);
            format(buffer);
            int free = PageItems.heapFreeSpace(page);
            if (wanted <= free) {
                return buffer;
            }
            unlock(buffer, other);
            if (!same) {
                buffers.release(buffer);
            }
            backend.space.searches++;
            block = backend.freeSpace.recordAndFind(buffers, storage, block, free, wanted);
        }
        return NONE;
    }

    private int read(SmgrRelation storage, int block, BulkInsert bulk) {
        return buffers.read(
                storage, ForkNumber.MAIN, block, ReadMode.NORMAL, bulk == null ? null : bulk.ring);
    }

    private void format(int buffer) {
        if (Page.isNew(page)) {
            Page.init(page, 0);
            buffers.markDirty(buffer);
        }
    }

    /** Ascending blocks (C20). */
    private void lock(int buffer, int block, int other) {
        boolean two = other != NONE && other != buffer;
        boolean otherFirst = two && Integer.compareUnsigned(backend.pool.block(other), block) < 0;
        if (otherFirst) {
            buffers.lockExclusive(other);
        }
        buffers.lockExclusive(buffer);
        if (two && !otherFirst) {
            buffers.lockExclusive(other);
        }
    }

    private void unlock(int buffer, int other) {
        buffers.unlock(buffer);
        if (other != NONE && other != buffer) {
            buffers.unlock(other);
        }
    }

    /**
     * All-visible pages have their map pages pinned on return; the locks may have been given up
     * meanwhile. (PostgreSQL: GetVisibilityMapPins.)
     */
    private void pinMaps(SmgrRelation storage, int buffer, int block, int other) {
        boolean two = other != NONE && other != buffer;
        int otherBlock = two ? backend.pool.block(other) : block;
        if (two) {
            backend.pool.wrap(other, otherPage);
        }
        for (; ; ) {
            boolean needs = Page.isAllVisible(page) && !VisibilityMap.isPinned(buffers, block, map);
            boolean otherNeeds =
                    two
                            && Page.isAllVisible(otherPage)
                            && !VisibilityMap.isPinned(buffers, otherBlock, otherMap);
            if (!needs && !otherNeeds) {
                return;
            }
            unlock(buffer, other);
            if (needs) {
                map = backend.visibilityMap.pin(buffers, storage, block, map);
            }
            if (otherNeeds) {
                otherMap = backend.visibilityMap.pin(buffers, storage, otherBlock, otherMap);
            }
            lock(buffer, block, other);
        }
    }

    /**
     * Adds a page, and some for those who wait to add theirs.
     *
     * @return -1 when others took the room on the new page, which is the target block then
     */
    private int extend(HeapRelation relation, int size, int wanted, int other, BulkInsert bulk) {
        SmgrRelation storage = relation.storage();
        if (!add(relation, wanted, bulk)) {
            return NONE;
        }
        backend.space.pagesAdded++;
        int buffer = added[0];
        int block = backend.pool.block(buffer);
        backend.pool.wrap(buffer, page);
        if (other != NONE && !buffers.tryLockExclusive(other)) {
            buffers.unlock(buffer);
            lock(buffer, block, other);
        }
        pinMaps(storage, buffer, block, other);
        format(buffer);
        if (size > PageItems.heapFreeSpace(page)) {
            unlock(buffer, other);
            buffers.release(buffer);
            backend.state(relation).targetBlock = block;
            return NONE;
        }
        return buffer;
    }

    /**
     * Adds the page, exclusively locked, to {@link #added}; in turn, see {@link RelationGrowth}.
     *
     * @return false when there is room meanwhile, on the target block
     */
    private boolean add(HeapRelation relation, int wanted, BulkInsert bulk) {
        SmgrRelation storage = relation.storage();
        boolean waited = backend.growth.lock(storage);
        try {
            if (waited) {
                int block = backend.freeSpace.pageWithFreeSpace(buffers, storage, wanted);
                if (block != BlockNumber.INVALID) {
                    backend.state(relation).targetBlock = block;
                    return false;
                }
                addForOthers(storage, backend.growth.extraPages(storage), bulk);
            }
            backend.freeSpace.forget();
            buffers.extendBy(
                    storage, ForkNumber.MAIN, 1, bulk == null ? null : bulk.ring, added, true);
            return true;
        } finally {
            backend.growth.unlock(storage);
        }
    }

    /**
     * They are not formatted: who uses one does that. The map learns of each at once, and at the
     * end so that a search from its root finds them. (PostgreSQL: RelationAddExtraBlocks.)
     */
    void addForOthers(SmgrRelation storage, int pages, BulkInsert bulk) {
        int first = BlockNumber.INVALID;
        int next = BlockNumber.INVALID;
        for (int left = pages; left > 0; ) {
            int got =
                    buffers.extendBy(
                            storage,
                            ForkNumber.MAIN,
                            Math.min(left, extra.length),
                            bulk == null ? null : bulk.ring,
                            extra,
                            false);
            for (int i = 0; i < got; i++) {
                int block = backend.pool.block(extra[i]);
                buffers.release(extra[i]);
                first = first == BlockNumber.INVALID ? block : first;
                next = block + 1;
                backend.freeSpace.record(buffers, storage, block, Page.SIZE - Page.HEADER_SIZE);
            }
            backend.space.pagesAdded += got;
            left -= got;
        }
        if (first != BlockNumber.INVALID) {
            backend.freeSpace.vacuumRange(buffers, storage, first, next);
        }
    }

    /** Pinned page of the visibility map for the page found; it is one if that is all-visible. */
    int mapBuffer() {
        return map;
    }

    /** The same for the other page. */
    int otherMapBuffer() {
        return otherMap;
    }

    /** The work on the page is over. */
    void releaseMaps() {
        VisibilityMap.release(buffers, map);
        VisibilityMap.release(buffers, otherMap);
        map = NONE;
        otherMap = NONE;
    }
}
