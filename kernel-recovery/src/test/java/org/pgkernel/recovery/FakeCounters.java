package org.pgkernel.recovery;

import org.pgkernel.base.TransactionId;

/** Plain variables. */
final class FakeCounters implements RecoveredCounters {
    long nextFullXid = 3;
    int nextOid = 16384;
    int nextMulti = 1;
    int nextMultiOffset;
    int oldestXid = 3;
    int oldestXidDb = 1;
    int oldestMulti = 1;
    int oldestMultiDb = 1;
    int oldestCommitTs;
    int newestCommitTs;
    Boolean tracked;

    @Override
    public long nextFullXid() {
        return nextFullXid;
    }

    @Override
    public void nextFullXid(long fullXid) {
        nextFullXid = fullXid;
    }

    @Override
    public void advancePastXid(int xid) {
        nextFullXid = TransactionId.advancePast(nextFullXid, xid);
    }

    @Override
    public int nextOid() {
        return nextOid;
    }

    @Override
    public void nextOid(int oid) {
        nextOid = oid;
    }

    @Override
    public int nextMulti() {
        return nextMulti;
    }

    @Override
    public int nextMultiOffset() {
        return nextMultiOffset;
    }

    @Override
    public void nextMulti(int multi, int offset) {
        nextMulti = multi;
        nextMultiOffset = offset;
    }

    @Override
    public void advanceNextMulti(int multi, int offset) {
        if (nextMulti - multi < 0) {
            nextMulti = multi;
        }
        if (nextMultiOffset - offset < 0) {
            nextMultiOffset = offset;
        }
    }

    @Override
    public int oldestXid() {
        return oldestXid;
    }

    @Override
    public int oldestXidDb() {
        return oldestXidDb;
    }

    @Override
    public void oldestXid(int xid, int db) {
        oldestXid = xid;
        oldestXidDb = db;
    }

    @Override
    public int oldestMulti() {
        return oldestMulti;
    }

    @Override
    public int oldestMultiDb() {
        return oldestMultiDb;
    }

    @Override
    public void oldestMulti(int multi, int db) {
        oldestMulti = multi;
        oldestMultiDb = db;
    }

    @Override
    public int oldestCommitTsXid() {
        return oldestCommitTs;
    }

    @Override
    public int newestCommitTsXid() {
        return newestCommitTs;
    }

    @Override
    public void commitTsXids(int oldest, int newest) {
        oldestCommitTs = oldest;
        newestCommitTs = newest;
    }

    @Override
    public int oldestActiveXid() {
        return TransactionId.xidOf(nextFullXid);
    }

    @Override
    public void trackCommitTimestamp(boolean on) {
        tracked = on;
    }
}
