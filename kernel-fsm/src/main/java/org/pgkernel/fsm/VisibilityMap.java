package org.pgkernel.fsm;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.smgr.SmgrRelation;

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

    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);
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
     * Clears bits of a heap block. The map's fork is made and extended as far as the block. The
     * page's LSN stays. The caller holds no lock. (PostgreSQL: visibilitymap_pin,
     * visibilitymap_clear.)
     */
    public void clear(PageBuffers buffers, SmgrRelation relation, int heapBlock, int bits) {
        int buffer = pages.readExtended(buffers, relation, mapBlock(heapBlock), page);
        buffers.lockExclusive(buffer);
        int at = byteOffset(heapBlock);
        int mask = bits << bitOffset(heapBlock);
        int old = page.getByte(at);
        if ((old & mask) != 0) {
            page.putByte(at, (byte) (old & ~mask));
            buffers.markDirty(buffer);
        }
        buffers.unlock(buffer);
        buffers.release(buffer);
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

    /**
     * The bits of a heap block, 0 when the map does not reach it. (PostgreSQL:
     * visibilitymap_get_status.)
     */
    public int status(PageBuffers buffers, SmgrRelation relation, int heapBlock) {
        int buffer = pages.read(buffers, relation, mapBlock(heapBlock), page);
        if (buffer < 0) {
            return 0;
        }
        int bits = page.getByte(byteOffset(heapBlock)) >>> bitOffset(heapBlock) & VALID_BITS;
        buffers.release(buffer);
        return bits;
    }

    /**
     * Clears the bits of heap blocks from {@code heapBlocks} on in the last map page that stays.
     *
     * @return the fork's new number of blocks, to which the caller truncates it; {@link
     *     BlockNumber#INVALID} when there is nothing to truncate. (PostgreSQL:
     *     visibilitymap_prepare_truncate.)
     */
    public int prepareTruncate(PageBuffers buffers, SmgrRelation relation, int heapBlocks) {
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
            page.setMemory(at + 1, Page.SIZE - (at + 1), (byte) 0);
            page.putByte(at, (byte) (page.getByte(at) & (1 << shift) - 1));
            buffers.markDirty(buffer);
            buffers.unlock(buffer);
            buffers.release(buffer);
        }
        boolean smaller =
                Integer.compareUnsigned(relation.nblocks(ForkNumber.VISIBILITY_MAP), newBlocks)
                        <= 0;
        return smaller ? BlockNumber.INVALID : newBlocks;
    }
}
