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
    private final int[] holeOffset = new int[IDS];
    private final int[] holeLength = new int[IDS];

    /** Bit n: block n is registered. */
    private long blocks;

    private int rmid;
    private int info;
    private int xid;
    private int origin;
    private int topLevelXid;
    private int mainLength;
    private int imagesLength;

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
        block(id, spc, db, rel, fork, block, 0);
        forkFlags[id] |= BKPBLOCK_HAS_IMAGE;
        int lower = Page.lower(page);
        int upper = Page.upper(page);
        boolean hasHole =
                standardLayout && lower >= Page.HEADER_SIZE && upper > lower && upper <= Page.SIZE;
        holeOffset[id] = hasHole ? lower : 0;
        holeLength[id] = hasHole ? upper - lower : 0;
        int tail = holeOffset[id] + holeLength[id];
        imageAt[id] = imagesLength;
        images.putBytes(imagesLength, page, 0, holeOffset[id]);
        images.putBytes(imagesLength + holeOffset[id], page, tail, Page.SIZE - tail);
        imagesLength += Page.SIZE - holeLength[id];
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
        for (int id = 0; id < IDS; id++) {
            if ((blocks & 1L << id) != 0) {
                length +=
                        4
                                + 4
                                + blockDataLength[id]
                                + (hasImage(id) ? 5 : 0)
                                + (isSameRelation(id, previous) ? 0 : 12);
                previous = id;
            }
        }
        if (length > MAX_LENGTH) {
            throw new RefusedException(
                    "a WAL record cannot have " + length + " bytes rmid=" + rmid);
        }
        return (int) length;
    }

    /** Writes header and body with CRC. @return length in bytes, not aligned */
    public int encode(MutableDirectBuffer to, int offset, long prevLsn) {
        int length = encodedLength();
        int end = encodePayload(to, encodeHeaders(to, offset + HEADER_SIZE));
        assert end == offset + length : "encoded " + (end - offset) + " of " + length;
        to.putInt(offset + XL_TOT_LEN, length);
        to.putInt(offset + XL_XID, xid);
        to.putLong(offset + XL_PREV, prevLsn);
        to.putByte(offset + XL_INFO, (byte) info);
        to.putByte(offset + XL_RMID, (byte) rmid);
        to.putShort(offset + XL_RMID + 1, (short) 0);
        crc.reset();
        crc.update(to, offset + HEADER_SIZE, length - HEADER_SIZE);
        crc.update(to, offset, XL_CRC);
        to.putInt(offset + XL_CRC, crc.value());
        return length;
    }

    private int encodeHeaders(MutableDirectBuffer to, int from) {
        int at = from;
        int previous = -1;
        for (int id = 0; id < IDS; id++) {
            if ((blocks & 1L << id) != 0) {
                at = encodeBlockHeader(to, at, id, isSameRelation(id, previous));
                previous = id;
            }
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
            to.putShort(at, (short) (Page.SIZE - holeLength[id]));
            to.putShort(at + 2, (short) holeOffset[id]);
            to.putByte(
                    at + 4,
                    (byte) (BKPIMAGE_APPLY | (holeLength[id] == 0 ? 0 : BKPIMAGE_HAS_HOLE)));
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
        for (int id = 0; id < IDS; id++) {
            if ((blocks & 1L << id) == 0) {
                continue;
            }
            if (hasImage(id)) {
                to.putBytes(at, images, imageAt[id], Page.SIZE - holeLength[id]);
                at += Page.SIZE - holeLength[id];
            }
            if (blockDataLength[id] > 0) {
                to.putBytes(at, blockData[id], 0, blockDataLength[id]);
                at += blockDataLength[id];
            }
        }
        to.putBytes(at, mainData, 0, mainLength);
        return at + mainLength;
    }

    private boolean hasImage(int id) {
        return (forkFlags[id] & BKPBLOCK_HAS_IMAGE) != 0;
    }

    private boolean isSameRelation(int id, int previous) {
        return previous >= 0
                && rel[id] == rel[previous]
                && db[id] == db[previous]
                && spc[id] == spc[previous];
    }
}
