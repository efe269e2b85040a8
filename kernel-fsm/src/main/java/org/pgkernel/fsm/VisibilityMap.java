package org.pgkernel.fsm;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.wal.RecordInsert;

/**
 * The visibility map of relations: two bits a heap block, "all tuples visible to everybody" and
 * "all tuples frozen", in pages of the map's fork.
 *
 * <pre>
 *   page header 24 | byte 0: heap blocks 0 1 2 3 from the low bits, two bits each | byte 1: 4 5 6 7 | …
 *   map byte = header + (heap block % 32672) / 4
 * </pre>
 *
 * <p>A set bit must be true; a clear bit says nothing. So a record that makes a tuple not visible
 * clears the bit even when the heap page has the change already. Instances own views and a page's
 * memory: one thread each. Nothing allocates but the constructor. (PostgreSQL: visibilitymap.c.)
 */
public final class VisibilityMap {
    /** All tuples of the block are visible to all transactions. */
    public static final int ALL_VISIBLE = 0x01;

    /** All tuples of the block are frozen. */
    public static final int ALL_FROZEN = 0x02;

    /** Both. (PostgreSQL: VISIBILITYMAP_VALID_BITS.) */
    public static final int VALID_BITS = 0x03;

    static final int MAP_BYTES = Page.SIZE - Page.HEADER_SIZE;
    static final int BLOCKS_PER_BYTE = 4;
    static final int BLOCKS_PER_PAGE = MAP_BYTES * BLOCKS_PER_BYTE;
    private static final long ALL_VISIBLE_BITS = 0x5555_5555_5555_5555L;

    private final VisibleRecord record = new VisibleRecord();
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);
    private final UnsafeBuffer heapPage = new UnsafeBuffer(0L, 0);
    private final MapPages pages = new MapPages(ForkNumber.VISIBILITY_MAP);

    /** The map block that holds a heap block's bits. */
    public static int mapBlock(int heapBlock) {
        return (int) (BlockNumber.toLong(heapBlock) / BLOCKS_PER_PAGE);
    }

    /** Offset of the byte in the page. */
    static int byteOffset(int heapBlock) {
        return Page.HEADER_SIZE
                + (int) (BlockNumber.toLong(heapBlock) % BLOCKS_PER_PAGE) / BLOCKS_PER_BYTE;
    }

    /** Position of the low one of the two bits in its byte. */
    static int bitOffset(int heapBlock) {
        return (heapBlock & BLOCKS_PER_BYTE - 1) * 2;
    }

    /**
     * Clears bits of a heap block, as redo does, which pins the map's page for each record. The
     * map's fork is made and extended as far as the block. The caller holds no lock.
     */
    public void clear(PageBuffers buffers, SmgrRelation relation, int heapBlock, int bits) {
        int buffer = pages.readExtended(buffers, relation, mapBlock(heapBlock), page);
        clear(buffers, heapBlock, buffer, bits);
        buffers.release(buffer);
    }

    /**
     * The map's page of a heap block, pinned; the fork is made and extended as needed. Whoever is
     * going to change bits does so before he locks the heap page, since a page may have to be read.
     *
     * @param held a buffer that an earlier call returned, -1 for none: given back if it is the
     *     right one, else released. (PostgreSQL: visibilitymap_pin.)
     */
    public int pin(PageBuffers buffers, SmgrRelation relation, int heapBlock, int held) {
        if (isPinned(buffers, heapBlock, held)) {
            return held;
        }
        release(buffers, held);
        return pages.readExtended(buffers, relation, mapBlock(heapBlock), page);
    }

    /** The same, but -1 when the map does not reach the block; nothing is made. */
    public int pinExisting(PageBuffers buffers, SmgrRelation relation, int heapBlock, int held) {
        if (isPinned(buffers, heapBlock, held)) {
            return held;
        }
        release(buffers, held);
        return pages.read(buffers, relation, mapBlock(heapBlock), page);
    }

    /**
     * True if {@code held}, of the same relation, is the map's page of the block. (PostgreSQL:
     * visibilitymap_pin_ok.)
     */
    public static boolean isPinned(PageBuffers buffers, int heapBlock, int held) {
        return held >= 0 && buffers.pool().block(held) == mapBlock(heapBlock);
    }

    /** Gives up what {@link #pin} returned; -1 is nothing. */
    public static void release(PageBuffers buffers, int held) {
        if (held >= 0) {
            buffers.release(held);
        }
    }

    /**
     * Clears bits of a heap block. The map page's LSN stays: the record that needs the bits clear
     * does it again in redo, whatever the page's LSN. The caller has logged or is about to log
     * that, holds the heap page's exclusive lock on a primary, and {@link #pin}ned the map's.
     *
     * @return false when they were clear. (PostgreSQL: visibilitymap_clear.)
     */
    public boolean clear(PageBuffers buffers, int heapBlock, int mapBuffer, int bits) {
        assert isPinned(buffers, heapBlock, mapBuffer) : "wrong page of the visibility map";
        buffers.lockExclusive(mapBuffer);
        buffers.pool().wrap(mapBuffer, page);
        int at = byteOffset(heapBlock);
        int mask = bits << bitOffset(heapBlock);
        int old = page.getByte(at);
        boolean set = (old & mask) != 0;
        if (set) {
            page.putByte(at, (byte) (old & ~mask));
            buffers.markDirty(mapBuffer);
        }
        buffers.unlock(mapBuffer);
        return set;
    }

    /**
     * Sets bits of a heap block and logs it. The caller holds the heap page's exclusive lock, has
     * set its all-visible flag, marked it dirty, and {@link #pin}ned the map's page; whatever made
     * all its tuples visible is logged (C17). Where hints are logged the heap page gets the
     * record's LSN, too. A failure after the bit is set stops the kernel.
     *
     * @param wal null for a relation that is not logged
     * @param cutoffXid newest xid that a standby's snapshot must see as ended, {@code
     *     TransactionId.INVALID} for none
     * @param bits ALL_VISIBLE, or both
     * @return the record's end, 0 when nothing was logged. (PostgreSQL: visibilitymap_set.)
     */
    public long set(
            PageBuffers buffers,
            RecordInsert wal,
            SmgrRelation relation,
            int heapBuffer,
            int mapBuffer,
            int cutoffXid,
            int bits) {
        BufferPool pool = buffers.pool();
        int heapBlock = pool.block(heapBuffer);
        assert isPinned(buffers, heapBlock, mapBuffer) : "wrong page of the visibility map";
        assert (bits & ALL_VISIBLE) != 0 && (bits & ~VALID_BITS) == 0 : "bits " + bits;
        pool.wrap(heapBuffer, heapPage);
        assert Page.isAllVisible(heapPage) : "the heap page's flag comes first";
        buffers.lockExclusive(mapBuffer);
        pool.wrap(mapBuffer, page);
        int at = byteOffset(heapBlock);
        int shift = bitOffset(heapBlock);
        long lsn = 0;
        if ((page.getByte(at) >>> shift & VALID_BITS) != bits) {
            try {
                page.putByte(at, (byte) (page.getByte(at) | bits << shift));
                buffers.markDirty(mapBuffer);
                if (wal != null) {
                    lsn = log(pool, wal, relation, heapBlock, cutoffXid, bits);
                }
            } catch (RuntimeException | Error e) {
                if (wal != null) {
                    throw wal.stop(e);
                }
                throw e;
            }
        }
        buffers.unlock(mapBuffer);
        return lsn;
    }

    private long log(
            BufferPool pool,
            RecordInsert wal,
            SmgrRelation relation,
            int heapBlock,
            int cutoffXid,
            int bits) {
        boolean hintsAreLogged = pool.hintsAreLogged();
        long lsn =
                record.insert(
                        wal,
                        relation,
                        mapBlock(heapBlock),
                        page,
                        heapBlock,
                        heapPage,
                        hintsAreLogged,
                        cutoffXid,
                        bits);
        if (hintsAreLogged) {
            Page.setLsn(heapPage, lsn);
        }
        Page.setLsn(page, lsn);
        return lsn;
    }

    /**
     * Sets bits of a heap block on the formatted map page that holds them, and the page's LSN, as
     * redo does. The caller holds the page's exclusive lock and marks it dirty when the answer is
     * true.
     *
     * @return false when exactly these bits were set already; nothing changed then. (PostgreSQL:
     *     visibilitymap_set.)
     */
    public static boolean set(UnsafeBuffer mapPage, int heapBlock, int bits, long lsn) {
        int at = byteOffset(heapBlock);
        int shift = bitOffset(heapBlock);
        int old = mapPage.getByte(at) & 0xFF;
        if ((old >>> shift & VALID_BITS) == bits) {
            return false;
        }
        mapPage.putByte(at, (byte) (old | bits << shift));
        Page.setLsn(mapPage, lsn);
        return true;
    }

    /** The bits of a heap block, 0 when the map does not reach it. */
    public int status(PageBuffers buffers, SmgrRelation relation, int heapBlock) {
        int buffer = pinExisting(buffers, relation, heapBlock, -1);
        int bits = status(buffers, heapBlock, buffer);
        release(buffers, buffer);
        return bits;
    }

    /**
     * The bits of a heap block, of a page that {@link #pin} or {@link #pinExisting} pinned; 0 for
     * -1. No lock is taken: who needs them to stay as they are holds the heap page's lock.
     * (PostgreSQL: visibilitymap_get_status.)
     */
    public int status(PageBuffers buffers, int heapBlock, int mapBuffer) {
        if (mapBuffer < 0) {
            return 0;
        }
        assert isPinned(buffers, heapBlock, mapBuffer) : "wrong page of the visibility map";
        buffers.pool().wrap(mapBuffer, page);
        return page.getByte(byteOffset(heapBlock)) >>> bitOffset(heapBlock) & VALID_BITS;
    }

    /** How many heap blocks have the bits set; others may change them meanwhile. */
    public record Count(int allVisible, int allFrozen) {}

    /** Reads the whole map. (PostgreSQL: visibilitymap_count.) */
    public Count count(PageBuffers buffers, SmgrRelation relation) {
        int visible = 0;
        int frozen = 0;
        for (int block = 0; ; block++) {
            int buffer = pages.read(buffers, relation, block, page);
            if (buffer < 0) {
                return new Count(visible, frozen);
            }
            for (int at = Page.HEADER_SIZE; at < Page.SIZE; at += Long.BYTES) {
                long word = page.getLong(at);
                visible += Long.bitCount(word & ALL_VISIBLE_BITS);
                frozen += Long.bitCount(word & ALL_VISIBLE_BITS << 1);
            }
            buffers.release(buffer);
        }
    }

    /**
     * Clears the bits of heap blocks from {@code heapBlocks} on in the last map page that stays.
     * Where hints are logged, so is that page: it could be torn on its way to the disk before the
     * truncation's own record is there.
     *
     * @param wal null in redo and for a relation that is not logged
     * @return the fork's new number of blocks, to which the caller truncates it; {@link
     *     BlockNumber#INVALID} when there is nothing to truncate. (PostgreSQL:
     *     visibilitymap_prepare_truncate.)
     */
    public int prepareTruncate(
            PageBuffers buffers, RecordInsert wal, SmgrRelation relation, int heapBlocks) {
        if (!relation.exists(ForkNumber.VISIBILITY_MAP)) {
            return BlockNumber.INVALID;
        }
        int block = mapBlock(heapBlocks);
        int at = byteOffset(heapBlocks);
        int shift = bitOffset(heapBlocks);
        int newBlocks = block;
        if (at != Page.HEADER_SIZE || shift != 0) {
            newBlocks = block + 1;
            int buffer = pages.read(buffers, relation, block, page);
            if (buffer < 0) {
                return BlockNumber.INVALID;
            }
            buffers.lockExclusive(buffer);
            try {
                page.setMemory(at + 1, Page.SIZE - (at + 1), (byte) 0);
                page.putByte(at, (byte) (page.getByte(at) & (1 << shift) - 1));
                buffers.markDirty(buffer);
                pages.logImage(buffers.pool(), wal, relation, block, page);
            } catch (RuntimeException | Error e) {
                if (wal != null) {
                    throw wal.stop(e);
                }
                throw e;
            }
            buffers.unlock(buffer);
            buffers.release(buffer);
        }
        boolean smaller =
                Integer.compareUnsigned(relation.nblocks(ForkNumber.VISIBILITY_MAP), newBlocks)
                        <= 0;
        return smaller ? BlockNumber.INVALID : newBlocks;
    }
}
