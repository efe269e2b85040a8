package org.pgkernel.wal;

import static org.pgkernel.wal.WalRecordFormat.*;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;

/**
 * A decoded record, a reused view into the reader's memory: valid until the reader moves on.
 * Decoding and every accessor allocate nothing. Asking for a block that the record does not have
 * throws DamagedDataException: the record contradicts its type. (PostgreSQL: DecodedXLogRecord,
 * xlogreader.h; xlogrecord.h.)
 */
public final class WalRecord {
    public static final int MAX_BLOCK_ID = XLR_MAX_BLOCK_ID;

    private static final int IDS = MAX_BLOCK_ID + 1;

    private final ImageRestorer restorer = new ImageRestorer();
    private final UnsafeBuffer dataView = new UnsafeBuffer(0, 0);
    private final UnsafeBuffer[] blockViews = new UnsafeBuffer[IDS];

    /** The record's bytes; its first one is at {@link #start}. */
    private UnsafeBuffer source;

    private int start;
    private long lsn;
    private long endLsn;
    private int totalLength;
    private int origin;
    private int topLevelXid;
    private int dataOffset;
    private int dataLength;
    private int maxBlockId = -1;

    /** Bit n: block n is in use. */
    private long blocks;

    // By block id; meaningful only where the bit is set. Offsets count from the record's first
    // byte.
    private final int[] forkFlags = new int[IDS];
    private final int[] spc = new int[IDS];
    private final int[] db = new int[IDS];
    private final int[] rel = new int[IDS];
    private final int[] block = new int[IDS];
    private final int[] blockDataOffset = new int[IDS];
    private final int[] blockDataLength = new int[IDS];
    private final int[] imageOffset = new int[IDS];
    private final int[] imageLength = new int[IDS];
    private final int[] imageInfo = new int[IDS];
    private final int[] holeOffset = new int[IDS];
    private final int[] holeLength = new int[IDS];

    WalRecord() {
        for (int i = 0; i < IDS; i++) {
            blockViews[i] = new UnsafeBuffer(0, 0);
        }
    }

    /**
     * Takes apart a record whose CRC is right. All lengths are checked against the record's own
     * before they are used.
     *
     * @return null, or what is wrong with it
     */
    String decode(UnsafeBuffer from, int offset, int length, long recordLsn, long recordEnd) {
        source = from;
        start = offset;
        totalLength = length;
        lsn = recordLsn;
        endLsn = recordEnd;
        origin = 0;
        topLevelXid = 0;
        dataLength = 0;
        maxBlockId = -1;
        blocks = 0;
        int end = offset + length;
        int at = offset + HEADER_SIZE;
        long payload = 0; // bytes of images and data that the headers have announced so far
        int previous = -1; // the last block with a relation of its own, or one that shares it
        while (end - at > payload) {
            int id = from.getByte(at++) & 0xFF;
            if (id == XLR_BLOCK_ID_DATA_SHORT || id == XLR_BLOCK_ID_DATA_LONG) {
                int size = id == XLR_BLOCK_ID_DATA_SHORT ? 1 : 4;
                if (end - at < size) {
                    return "its headers do not fit its length";
                }
                long announced =
                        size == 1 ? from.getByte(at) & 0xFF : from.getInt(at) & 0xFFFFFFFFL;
                at += size;
                payload += announced;
                if (payload > length) {
                    return "its headers announce more than its length";
                }
                dataLength = (int) announced;
                break; // always last
            } else if (id == XLR_BLOCK_ID_ORIGIN) {
                if (end - at < 2) {
                    return "its headers do not fit its length";
                }
                origin = from.getShort(at) & 0xFFFF;
                at += 2;
            } else if (id == XLR_BLOCK_ID_TOPLEVEL_XID) {
                if (end - at < 4) {
                    return "its headers do not fit its length";
                }
                topLevelXid = from.getInt(at);
                at += 4;
            } else if (id > MAX_BLOCK_ID) {
                return "invalid block id " + id;
            } else if (id <= maxBlockId) {
                return "block id " + id + " is out of order";
            } else {
                at = decodeBlock(id, at, end, previous);
                if (at < 0) {
                    return WRONG[-at];
                }
                payload += blockDataLength[id] + imageLength[id];
                previous = id;
            }
        }
        if (end - at != payload) {
            return "the lengths in its headers do not add up to its own";
        }
        locatePayload(at - offset);
        return null;
    }

    private static final int SHORT_HEADER = -1;
    private static final int DATA_FLAG = -2;
    private static final int IMAGE_LENGTHS = -3;
    private static final int NO_RELATION = -4;
    private static final int BAD_FORK = -5;
    private static final String[] WRONG = {
        null,
        "its headers do not fit its length",
        "a block's data flag and data length contradict each other",
        "a block image's flags, length and hole contradict each other",
        "its first block refers to the relation of a block before it",
        "a block's fork number is none",
    };

    /**
     * @return where the next header begins, or the negative index of what is wrong
     */
    private int decodeBlock(int id, int from, int end, int previous) {
        int at = from;
        if (end - at < 3) {
            return SHORT_HEADER;
        }
        int flags = source.getByte(at) & 0xFF;
        int length = source.getShort(at + 1) & 0xFFFF;
        at += 3;
        if ((flags & BKPBLOCK_FORK_MASK) >= ForkNumber.COUNT) {
            return BAD_FORK;
        }
        if ((flags & BKPBLOCK_HAS_DATA) != 0 != (length != 0)) {
            return DATA_FLAG;
        }
        forkFlags[id] = flags;
        blockDataLength[id] = length;
        imageLength[id] = 0;
        imageInfo[id] = 0;
        if ((flags & BKPBLOCK_HAS_IMAGE) != 0) {
            at = decodeImage(id, at, end);
            if (at < 0) {
                return at;
            }
        }
        if ((flags & BKPBLOCK_SAME_REL) == 0) {
            if (end - at < 16) {
                return SHORT_HEADER;
            }
            spc[id] = source.getInt(at);
            db[id] = source.getInt(at + 4);
            rel[id] = source.getInt(at + 8);
            at += 12;
        } else {
            if (previous < 0) {
                return NO_RELATION;
            }
            if (end - at < 4) {
                return SHORT_HEADER;
            }
            spc[id] = spc[previous];
            db[id] = db[previous];
            rel[id] = rel[previous];
        }
        block[id] = source.getInt(at);
        blocks |= 1L << id;
        maxBlockId = id;
        return at + 4;
    }

    private int decodeImage(int id, int from, int end) {
        int at = from;
        if (end - at < 5) {
            return SHORT_HEADER;
        }
        int length = source.getShort(at) & 0xFFFF;
        int hole = source.getShort(at + 2) & 0xFFFF;
        int info = source.getByte(at + 4) & 0xFF;
        at += 5;
        boolean hasHole = (info & BKPIMAGE_HAS_HOLE) != 0;
        boolean isCompressed = (info & BKPIMAGE_COMPRESSED) != 0;
        int cut;
        if (!isCompressed) {
            cut = Page.SIZE - length;
        } else if (hasHole) {
            if (end - at < 2) {
                return SHORT_HEADER;
            }
            cut = source.getShort(at) & 0xFFFF;
            at += 2;
        } else {
            cut = 0;
        }
        // Also refused, as PostgreSQL does not: a hole that leaves the page, an image longer than
        // one.
        if (hasHole != (cut != 0)
                || hasHole != (hole != 0)
                || cut < 0
                || hole + cut > Page.SIZE
                || isCompressed && length >= Page.SIZE) {
            return IMAGE_LENGTHS;
        }
        imageLength[id] = length;
        imageInfo[id] = info;
        holeOffset[id] = hole;
        holeLength[id] = cut;
        return at;
    }

    private void locatePayload(int first) {
        int at = first;
        for (int id = 0; id <= maxBlockId; id++) {
            if ((blocks & 1L << id) != 0) {
                imageOffset[id] = at;
                at += imageLength[id];
                blockDataOffset[id] = at;
                at += blockDataLength[id];
            }
        }
        dataOffset = at;
    }

    /** Where the record begins. (PostgreSQL: ReadRecPtr.) */
    public long lsn() {
        return lsn;
    }

    /** Where the next one may begin, the LSN that redo stamps on pages. (PostgreSQL: EndRecPtr.) */
    public long endLsn() {
        return endLsn;
    }

    public long prevLsn() {
        return source.getLong(start + XL_PREV);
    }

    public int xid() {
        return source.getInt(start + XL_XID);
    }

    /** Resource manager number. */
    public int rmid() {
        return source.getByte(start + XL_RMID) & 0xFF;
    }

    /** The whole info byte. */
    public int info() {
        return source.getByte(start + XL_INFO) & 0xFF;
    }

    /** The upper four bits of the info byte, which belong to the resource manager. */
    public final int type() {
        return info() & 0xF0;
    }

    /** Length of the record in bytes, header included. (xl_tot_len) */
    public int totalLength() {
        return totalLength;
    }

    /** Replication origin, 0 for none. */
    public int origin() {
        return origin;
    }

    /** Top-level transaction, when the record is the first to tell it; 0 otherwise. */
    public int topLevelXid() {
        return topLevelXid;
    }

    /** Main data; index 0 is its first byte; length {@link #dataLength}. */
    public DirectBuffer data() {
        dataView.wrap(source.addressOffset() + start + dataOffset, dataLength);
        return dataView;
    }

    public int dataLength() {
        return dataLength;
    }

    /** Highest block id in use, -1 for none; ids may have gaps. */
    public int maxBlockId() {
        return maxBlockId;
    }

    public boolean hasBlock(int id) {
        return id <= maxBlockId && (blocks & 1L << id) != 0;
    }

    public int blockSpc(int id) {
        checkBlock(id);
        return spc[id];
    }

    public int blockDb(int id) {
        checkBlock(id);
        return db[id];
    }

    public int blockRel(int id) {
        checkBlock(id);
        return rel[id];
    }

    public ForkNumber blockFork(int id) {
        checkBlock(id);
        return ForkNumber.of(forkFlags[id] & BKPBLOCK_FORK_MASK);
    }

    public int blockNumber(int id) {
        checkBlock(id);
        return block[id];
    }

    /** BKPBLOCK_WILL_INIT: redo formats the page from nothing. */
    public boolean willInit(int id) {
        return hasBlock(id) && (forkFlags[id] & BKPBLOCK_WILL_INIT) != 0;
    }

    public boolean hasImage(int id) {
        return hasBlock(id) && (forkFlags[id] & BKPBLOCK_HAS_IMAGE) != 0;
    }

    /**
     * The image must be restored in redo (BKPIMAGE_APPLY); false for images kept only for
     * consistency checks.
     */
    public boolean applyImage(int id) {
        return hasBlock(id) && (imageInfo[id] & BKPIMAGE_APPLY) != 0;
    }

    /** The image's flags, {@code BKPIMAGE_…}; 0 without an image. */
    public int imageInfo(int id) {
        return hasBlock(id) ? imageInfo[id] : 0;
    }

    /** Bytes of the image as logged. */
    public int imageLength(int id) {
        return hasImage(id) ? imageLength[id] : 0;
    }

    /** Where the image's hole begins in the page, 0 when it has none. */
    public int holeOffset(int id) {
        return hasImage(id) ? holeOffset[id] : 0;
    }

    public int holeLength(int id) {
        return hasImage(id) ? holeLength[id] : 0;
    }

    public boolean hasBlockData(int id) {
        return hasBlock(id) && blockDataLength[id] != 0;
    }

    /**
     * Data registered with the block; index 0 is its first byte; one view per id, so two blocks'
     * data may be used at once.
     */
    public DirectBuffer blockData(int id) {
        checkBlock(id);
        UnsafeBuffer view = blockViews[id];
        view.wrap(source.addressOffset() + start + blockDataOffset[id], blockDataLength[id]);
        return view;
    }

    public int blockDataLength(int id) {
        return hasBlock(id) ? blockDataLength[id] : 0;
    }

    /**
     * Restores the image with its hole, decompressing (pglz, lz4, zstd).
     *
     * @throws org.pgkernel.base.error.DamagedDataException when it does not decompress to a whole
     *     page, naming LSN and block
     */
    public void restoreImage(int id, MutableDirectBuffer page) {
        checkBlock(id);
        if (!hasImage(id)) {
            throw new DamagedDataException(
                    "the WAL record has no image of block reference " + id + place(id));
        }
        if (!restorer.restore(
                source,
                start + imageOffset[id],
                imageLength[id],
                imageInfo[id],
                holeOffset[id],
                holeLength[id],
                page)) {
            throw new DamagedDataException(
                    "the WAL record's page image does not decompress to a page" + place(id));
        }
    }

    private void checkBlock(int id) {
        if (!hasBlock(id)) {
            throw new DamagedDataException(
                    "the WAL record has no block reference "
                            + id
                            + " rmid="
                            + rmid()
                            + " info="
                            + info()
                            + " lsn="
                            + Lsn.format(lsn));
        }
    }

    private String place(int id) {
        return " rel="
                + Integer.toUnsignedString(spc[id])
                + "/"
                + Integer.toUnsignedString(db[id])
                + "/"
                + Integer.toUnsignedString(rel[id])
                + " fork="
                + blockFork(id)
                + " block="
                + Integer.toUnsignedString(block[id])
                + " lsn="
                + Lsn.format(lsn);
    }
}
