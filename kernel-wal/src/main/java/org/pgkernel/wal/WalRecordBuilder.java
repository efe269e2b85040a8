package org.pgkernel.wal;

import static org.pgkernel.wal.WalRecordFormat.*;

import org.agrona.DirectBuffer;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.MutableDirectBuffer;
import org.pgkernel.base.Crc32c;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.RefusedException;

/**
 * Assembles one record: takes tags and page bytes, never buffer handles; everything given is copied
 * at once. Blocks may come in any order of ids and are laid out by id. Reusable, allocates nothing
 * once it has grown; not thread-safe. (PostgreSQL: xloginsert.c, XLogRecordAssemble.)
 */
public final class WalRecordBuilder {
    private static final int IDS = XLR_MAX_BLOCK_ID + 1;

    private final ImageCompression compression;

    /** Null when images are not compressed. */
    private final ImageCompressor compressor;

    private final Crc32c crc = new Crc32c();
    private final ExpandableArrayBuffer mainData = new ExpandableArrayBuffer();
    private final ExpandableArrayBuffer[] blockData = new ExpandableArrayBuffer[IDS];

    /** The images without their holes, one after another. */
    private final ExpandableArrayBuffer images = new ExpandableArrayBuffer();

    private final int[] forkFlags = new int[IDS];
    private final int[] spc = new int[IDS];
    private final int[] db = new int[IDS];
    private final int[] rel = new int[IDS];
    private final int[] block = new int[IDS];
    private final int[] blockDataLength = new int[IDS];
    private final int[] imageAt = new int[IDS];
    private final int[] imageLength = new int[IDS];
    private final int[] imageInfo = new int[IDS];
    private final int[] holeOffset = new int[IDS];
    private final int[] holeLength = new int[IDS];

    /** The record as {@link #prepare} lays it out. */
    private final ExpandableArrayBuffer assembled = new ExpandableArrayBuffer(512);

    /** Where the record went; 0 until it was inserted. */
    private long startLsn;

    /** Lowest LSN of the pages that the record changes without holding their image. */
    private long lowestWithoutImage;

    /** Bit n: block n is registered. */
    private long blocks;

    private int rmid;
    private int info;
    private int xid;
    private int origin;
    private int topLevelXid;
    private int mainLength;
    private int imagesLength;

    public WalRecordBuilder() {
        this(ImageCompression.OFF);
    }

    /** A builder whose images are compressed where that saves room. */
    public WalRecordBuilder(ImageCompression compression) {
        this.compression = compression;
        compressor = compression == ImageCompression.OFF ? null : new ImageCompressor(compression);
    }

    /** Forgets the record before. */
    public WalRecordBuilder begin(int rmid, int info, int xid) {
        assert rmidIsValid(rmid) && (info & ~0xFF) == 0 : "rmid=" + rmid + " info=" + info;
        this.rmid = rmid;
        this.info = info;
        this.xid = xid;
        blocks = 0;
        origin = 0;
        topLevelXid = 0;
        mainLength = 0;
        imagesLength = 0;
        startLsn = 0;
        lowestWithoutImage = Long.MAX_VALUE;
        return this;
    }

    /** Tells the replication origin; 0 for none. */
    public WalRecordBuilder origin(int id) {
        origin = id;
        return this;
    }

    /** Tells the top-level transaction of the subtransaction that logs; 0 for none. */
    public WalRecordBuilder topLevelXid(int topLevel) {
        topLevelXid = topLevel;
        return this;
    }

    /** Appends to the main data. */
    public WalRecordBuilder data(DirectBuffer from, int offset, int length) {
        mainData.putBytes(mainLength, from, offset, length);
        mainLength += length;
        return this;
    }

    /** A block reference without an image. @param flags BKPBLOCK_WILL_INIT or 0 */
    public WalRecordBuilder block(
            int id, int spc, int db, int rel, ForkNumber fork, int block, int flags) {
        assert id >= 0 && id < IDS && (blocks & 1L << id) == 0 : "block id " + id;
        assert (flags & ~BKPBLOCK_WILL_INIT) == 0 : "flags " + flags;
        this.spc[id] = spc;
        this.db[id] = db;
        this.rel[id] = rel;
        this.block[id] = block;
        forkFlags[id] = fork.ordinal() | flags;
        blockDataLength[id] = 0;
        blocks |= 1L << id;
        return this;
    }

    /** A block reference with a full-page image, hole removed when {@code standardLayout}. */
    public WalRecordBuilder image(
            int id,
            int spc,
            int db,
            int rel,
            ForkNumber fork,
            int block,
            DirectBuffer page,
            boolean standardLayout) {
        return block(id, spc, db, rel, fork, block, 0).addImage(id, page, standardLayout);
    }

    /** The block, registered without an image, gets one after all. */
    WalRecordBuilder addImage(int id, DirectBuffer page, boolean standardLayout) {
        assert (blocks & 1L << id) != 0 && !hasImage(id) : "block id " + id;
        forkFlags[id] |= BKPBLOCK_HAS_IMAGE;
        int lower = Page.lower(page);
        int upper = Page.upper(page);
        boolean hasHole =
                standardLayout && lower >= Page.HEADER_SIZE && upper > lower && upper <= Page.SIZE;
        holeOffset[id] = hasHole ? lower : 0;
        holeLength[id] = hasHole ? upper - lower : 0;
        int tail = holeOffset[id] + holeLength[id];
        imageAt[id] = imagesLength;
        imageInfo[id] = BKPIMAGE_APPLY | (hasHole ? BKPIMAGE_HAS_HOLE : 0);
        int length =
                compressor == null ? 0 : compressor.compress(page, holeOffset[id], holeLength[id]);
        if (length > 0) {
            images.putBytes(imagesLength, compressor.compressed, 0, length);
            imageInfo[id] |= compression.flag;
        } else {
            length = Page.SIZE - holeLength[id];
            images.putBytes(imagesLength, page, 0, holeOffset[id]);
            images.putBytes(imagesLength + holeOffset[id], page, tail, Page.SIZE - tail);
        }
        imageLength[id] = length;
        imagesLength += length;
        return this;
    }

    /**
     * Appends to the data of block {@code id}.
     *
     * @throws RefusedException when it would exceed the 65535 bytes that the format has room for
     */
    public WalRecordBuilder blockData(int id, DirectBuffer from, int offset, int length) {
        assert (blocks & 1L << id) != 0 : "block id " + id;
        if (blockDataLength[id] + length > 0xFFFF) {
            throw new RefusedException(
                    "a WAL record cannot hold more than 65535 bytes of one block's data rmid="
                            + rmid);
        }
        if (blockData[id] == null) {
            blockData[id] = new ExpandableArrayBuffer();
        }
        blockData[id].putBytes(blockDataLength[id], from, offset, length);
        blockDataLength[id] += length;
        if (blockDataLength[id] > 0) {
            forkFlags[id] |= BKPBLOCK_HAS_DATA;
        }
        return this;
    }

    /** The block's image says it all. */
    void dropBlockData(int id) {
        blockDataLength[id] = 0;
        forkFlags[id] &= ~BKPBLOCK_HAS_DATA;
    }

    /** Every page without image is told anew. */
    void forgetWithoutImage() {
        lowestWithoutImage = Long.MAX_VALUE;
    }

    /**
     * The caller found that a page with this LSN needs no full-page image. When the redo point has
     * passed it by the time of the insertion, {@link WalInserter#insert} refuses and asks again.
     */
    public WalRecordBuilder withoutImage(long pageLsn) {
        lowestWithoutImage = Math.min(lowestWithoutImage, pageLsn);
        return this;
    }

    long lowestWithoutImage() {
        return lowestWithoutImage;
    }

    boolean isSwitch() {
        return rmid == RM_XLOG_ID && (info & 0xF0) == XLOG_SWITCH;
    }

    /** LSN at which the record begins, once {@link WalInserter#insert} took it. */
    public long startLsn() {
        return startLsn;
    }

    public int rmid() {
        return rmid;
    }

    public int info() {
        return info;
    }

    /**
     * Bytes that {@link #encode} will write.
     *
     * @throws RefusedException when PostgreSQL could not read so long a record
     */
    public int encodedLength() {
        long length = HEADER_SIZE + (origin == 0 ? 0 : 3) + (topLevelXid == 0 ? 0 : 5);
        length += mainLength == 0 ? 0 : mainLength > 255 ? 5 : 2;
        length += (long) mainLength + imagesLength;
        int previous = -1;
        for (long left = blocks; left != 0; left &= left - 1) {
            int id = Long.numberOfTrailingZeros(left);
            length +=
                    4
                            + 4
                            + blockDataLength[id]
                            + (hasImage(id) ? hasHoleLength(id) ? 7 : 5 : 0)
                            + (isSameRelation(id, previous) ? 0 : 12);
            previous = id;
        }
        if (length > MAX_LENGTH) {
            throw new RefusedException(
                    "a WAL record cannot have " + length + " bytes rmid=" + rmid);
        }
        return (int) length;
    }

    /** Writes header and body with CRC. @return length in bytes, not aligned */
    public int encode(MutableDirectBuffer to, int offset, long prevLsn) {
        int length = encodeBody(to, offset);
        to.putLong(offset + XL_PREV, prevLsn);
        crc.update(to, offset, XL_CRC);
        to.putInt(offset + XL_CRC, crc.value());
        return length;
    }

    /**
     * Lays the record out in memory of the builder's own, all but what its place decides. @return
     * length in bytes, not aligned
     */
    int prepare() {
        startLsn = 0;
        int length = encodeBody(assembled, 0);
        assembled.putLong(length, 0);
        return length;
    }

    /**
     * After {@link #prepare}: the record is complete. @return its bytes, from index 0 on, and zeros
     * behind them up to a multiple of 8
     */
    byte[] finish(long startLsn, long prevLsn) {
        this.startLsn = startLsn;
        assembled.putLong(XL_PREV, prevLsn);
        crc.update(assembled, 0, XL_CRC);
        assembled.putInt(XL_CRC, crc.value());
        return assembled.byteArray();
    }

    /** Everything but the prev-link and the CRC, of which the body's part is taken. */
    private int encodeBody(MutableDirectBuffer to, int offset) {
        int length = encodedLength();
        int end = encodePayload(to, encodeHeaders(to, offset + HEADER_SIZE));
        assert end == offset + length : "encoded " + (end - offset) + " of " + length;
        // In the words that the sum takes in: a processor waits when it reads a word that was
        // written in pieces.
        to.putLong(offset + XL_TOT_LEN, length | (long) xid << 32);
        to.putInt(offset + XL_INFO, info | rmid << 8);
        crc.reset();
        crc.update(to, offset + HEADER_SIZE, length - HEADER_SIZE);
        return length;
    }

    private int encodeHeaders(MutableDirectBuffer to, int from) {
        int at = from;
        int previous = -1;
        for (long left = blocks; left != 0; left &= left - 1) {
            int id = Long.numberOfTrailingZeros(left);
            at = encodeBlockHeader(to, at, id, isSameRelation(id, previous));
            previous = id;
        }
        if (origin != 0) {
            to.putByte(at, (byte) XLR_BLOCK_ID_ORIGIN);
            to.putShort(at + 1, (short) origin);
            at += 3;
        }
        if (topLevelXid != 0) {
            to.putByte(at, (byte) XLR_BLOCK_ID_TOPLEVEL_XID);
            to.putInt(at + 1, topLevelXid);
            at += 5;
        }
        if (mainLength > 255) {
            to.putByte(at, (byte) XLR_BLOCK_ID_DATA_LONG);
            to.putInt(at + 1, mainLength);
            at += 5;
        } else if (mainLength > 0) {
            to.putByte(at, (byte) XLR_BLOCK_ID_DATA_SHORT);
            to.putByte(at + 1, (byte) mainLength);
            at += 2;
        }
        return at;
    }

    private int encodeBlockHeader(MutableDirectBuffer to, int from, int id, boolean sameRelation) {
        int at = from;
        to.putByte(at, (byte) id);
        to.putByte(at + 1, (byte) (forkFlags[id] | (sameRelation ? BKPBLOCK_SAME_REL : 0)));
        to.putShort(at + 2, (short) blockDataLength[id]);
        at += 4;
        if (hasImage(id)) {
            to.putShort(at, (short) imageLength[id]);
            to.putShort(at + 2, (short) holeOffset[id]);
            to.putByte(at + 4, (byte) imageInfo[id]);
            if (hasHoleLength(id)) {
                to.putShort(at + 5, (short) holeLength[id]);
                at += 2;
            }
            at += 5;
        }
        if (!sameRelation) {
            to.putInt(at, spc[id]);
            to.putInt(at + 4, db[id]);
            to.putInt(at + 8, rel[id]);
            at += 12;
        }
        to.putInt(at, block[id]);
        return at + 4;
    }

    private int encodePayload(MutableDirectBuffer to, int from) {
        int at = from;
        for (long left = blocks; left != 0; left &= left - 1) {
            int id = Long.numberOfTrailingZeros(left);
            if (hasImage(id)) {
                to.putBytes(at, images, imageAt[id], imageLength[id]);
                at += imageLength[id];
            }
            if (blockDataLength[id] > 0) {
                to.putBytes(at, blockData[id], 0, blockDataLength[id]);
                at += blockDataLength[id];
            }
        }
        to.putBytes(at, mainData, 0, mainLength);
        return at + mainLength;
    }

    boolean hasImage(int id) {
        return (forkFlags[id] & BKPBLOCK_HAS_IMAGE) != 0;
    }

    /** Only a compressed image does not tell its hole's length by its own. */
    private boolean hasHoleLength(int id) {
        return (imageInfo[id] & BKPIMAGE_COMPRESSED) != 0 && holeLength[id] != 0;
    }

    private boolean isSameRelation(int id, int previous) {
        return previous >= 0
                && rel[id] == rel[previous]
                && db[id] == db[previous]
                && spc[id] == spc[previous];
    }
}
