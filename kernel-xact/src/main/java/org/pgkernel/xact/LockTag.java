package org.pgkernel.xact;

import org.pgkernel.base.BlockNumber;

/**
 * What a lock is on. Changeable, so that one object serves to look up many; a tag that is a key of
 * a map is not changed. (PostgreSQL: LOCKTAG, lock.h.)
 */
final class LockTag {
    static final int RELATION = 0;
    static final int TUPLE = 1;
    static final int TRANSACTION = 2;

    private int type;
    private int db;
    private int rel;

    /** Of a tuple; of a transaction its xid. */
    private int block;

    private int offset;

    LockTag relation(int db, int rel) {
        return set(RELATION, db, rel, 0, 0);
    }

    LockTag tuple(int db, int rel, int block, int offset) {
        return set(TUPLE, db, rel, block, offset);
    }

    LockTag transaction(int xid) {
        return set(TRANSACTION, 0, 0, xid, 0);
    }

    LockTag set(LockTag other) {
        return set(other.type, other.db, other.rel, other.block, other.offset);
    }

    private LockTag set(int type, int db, int rel, int block, int offset) {
        this.type = type;
        this.db = db;
        this.rel = rel;
        this.block = block;
        this.offset = offset;
        return this;
    }

    boolean isTransaction() {
        return type == TRANSACTION;
    }

    int xid() {
        assert isTransaction();
        return block;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof LockTag tag
                && type == tag.type
                && rel == tag.rel
                && block == tag.block
                && offset == tag.offset
                && db == tag.db;
    }

    /** Multiplied so that neighbours in any field fall apart. */
    @Override
    public int hashCode() {
        long mixed = (long) db << 32 ^ Integer.toUnsignedLong(rel) ^ (long) type << 61;
        mixed = mixed * 0x9E3779B97F4A7C15L ^ (long) offset << 40 ^ Integer.toUnsignedLong(block);
        mixed *= 0x9E3779B97F4A7C15L;
        return (int) (mixed >>> 32);
    }

    @Override
    public String toString() {
        String relation = "relation " + Integer.toUnsignedString(rel) + " of database ";
        return switch (type) {
            case RELATION -> relation + Integer.toUnsignedString(db);
            case TUPLE ->
                    "tuple ("
                            + BlockNumber.toLong(block)
                            + ","
                            + offset
                            + ") of "
                            + relation
                            + Integer.toUnsignedString(db);
            default -> "transaction " + Integer.toUnsignedString(block);
        };
    }
}
