package org.pgkernel.wal;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.pgkernel.base.ForkNumber;

/**
 * A decoded record, a reused view into the reader's memory: valid until the reader moves on. Decoding and every accessor allocate nothing.
 * (PostgreSQL: DecodedXLogRecord, xlogreader.h; xlogrecord.h.)
 */
public final class WalRecord {
    public static final int MAX_BLOCK_ID = 32;

    WalRecord() {}

    /** Where the record begins. (PostgreSQL: ReadRecPtr.) */
    public long lsn() {
        throw new AssertionError("stub");
    }

    /** Where the next one may begin, the LSN that redo stamps on pages. (PostgreSQL: EndRecPtr.) */
    public long endLsn() {
        throw new AssertionError("stub");
    }

    public long prevLsn() {
        throw new AssertionError("stub");
    }

    public int xid() {
        throw new AssertionError("stub");
    }

    /** Resource manager number. */
    public int rmid() {
        throw new AssertionError("stub");
    }

    /** The whole info byte. */
    public int info() {
        throw new AssertionError("stub");
    }

    /** The upper four bits of the info byte, which belong to the resource manager. */
    public final int type() {
        return info() & 0xF0;
    }

    /** Length of the record in bytes, header included. (xl_tot_len) */
    public int totalLength() {
        throw new AssertionError("stub");
    }

    /** Main data; index 0 is its first byte; length {@link #dataLength}. */
    public DirectBuffer data() {
        throw new AssertionError("stub");
    }

    public int dataLength() {
        throw new AssertionError("stub");
    }

    /** Highest block id in use, -1 for none; ids may have gaps. */
    public int maxBlockId() {
        throw new AssertionError("stub");
    }

    public boolean hasBlock(int id) {
        throw new AssertionError("stub");
    }

    public int blockSpc(int id) {
        throw new AssertionError("stub");
    }

    public int blockDb(int id) {
        throw new AssertionError("stub");
    }

    public int blockRel(int id) {
        throw new AssertionError("stub");
    }

    public ForkNumber blockFork(int id) {
        throw new AssertionError("stub");
    }

    public int blockNumber(int id) {
        throw new AssertionError("stub");
    }

    /** BKPBLOCK_WILL_INIT: redo formats the page from nothing. */
    public boolean willInit(int id) {
        throw new AssertionError("stub");
    }

    public boolean hasImage(int id) {
        throw new AssertionError("stub");
    }

    /** The image must be restored in redo (BKPIMAGE_APPLY); false for images kept only for consistency checks. */
    public boolean applyImage(int id) {
        throw new AssertionError("stub");
    }

    public boolean hasBlockData(int id) {
        throw new AssertionError("stub");
    }

    /** Data registered with the block; index 0 is its first byte; one view per id, so two blocks' data may be used at once. */
    public DirectBuffer blockData(int id) {
        throw new AssertionError("stub");
    }

    public int blockDataLength(int id) {
        throw new AssertionError("stub");
    }

    /**
     * Restores the image with its hole, decompressing (pglz, lz4, zstd).
     *
     * @throws org.pgkernel.base.error.DamagedDataException when it does not decompress to a whole page, naming LSN and block
     */
    public void restoreImage(int id, MutableDirectBuffer page) {
        throw new AssertionError("stub");
    }
}
