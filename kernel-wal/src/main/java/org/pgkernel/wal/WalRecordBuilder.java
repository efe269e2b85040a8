package org.pgkernel.wal;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.pgkernel.base.ForkNumber;

/** Assembles one record: takes tags and page bytes, never buffer handles. Reusable; not thread-safe. (PostgreSQL: xloginsert.c.) */
public final class WalRecordBuilder {
    public WalRecordBuilder begin(int rmid, int info, int xid) {
        throw new AssertionError("stub");
    }

    /** Appends to the main data. */
    public WalRecordBuilder data(DirectBuffer from, int offset, int length) {
        throw new AssertionError("stub");
    }

    /** A block reference without an image. @param flags BKPBLOCK_WILL_INIT or 0 */
    public WalRecordBuilder block(int id, int spc, int db, int rel, ForkNumber fork, int block, int flags) {
        throw new AssertionError("stub");
    }

    /** A block reference with a full-page image, hole removed when {@code standardLayout}. */
    public WalRecordBuilder image(int id, int spc, int db, int rel, ForkNumber fork, int block, DirectBuffer page, boolean standardLayout) {
        throw new AssertionError("stub");
    }

    /** Appends to the data of block {@code id}. */
    public WalRecordBuilder blockData(int id, DirectBuffer from, int offset, int length) {
        throw new AssertionError("stub");
    }

    /** Writes header and body with CRC. @return length in bytes, not aligned */
    public int encode(MutableDirectBuffer to, int offset, long prevLsn) {
        throw new AssertionError("stub");
    }
}
