package org.pgkernel.xact;

import java.util.concurrent.atomic.AtomicLong;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.wal.WalRecordBuilder;

/** A cluster's transaction logs on a simulated disk, as recovery leaves them. */
final class XactFixture {
    static final String DATA = "/data";

    static final WraparoundListener SILENT =
            new WraparoundListener() {
                @Override
                public void warning(String message) {}

                @Override
                public void vacuumNeeded(int database) {}
            };

    private XactFixture() {}

    static SimulatedDisk disk() {
        return new SimulatedDisk(1)
                .directories(
                        DATA + "/pg_wal",
                        DATA + "/pg_xact",
                        DATA + "/pg_subtrans",
                        DATA + "/pg_commit_ts",
                        DATA + "/pg_twophase",
                        DATA + "/pg_multixact/offsets",
                        DATA + "/pg_multixact/members");
    }

    /** As in a checkpoint: all before the next xid is frozen but the last few. */
    static void counters(XactModule module, long nextFullXid) {
        XactCounters counters = module.xactCounters();
        counters.nextFullXid(nextFullXid);
        counters.oldestXid(
                TransactionId.isNormal((int) nextFullXid - 100)
                        ? (int) nextFullXid - 100
                        : TransactionId.FIRST_NORMAL,
                5);
        counters.nextMulti(1, 0);
        counters.oldestMulti(1, 5);
    }

    /** Makes the files of a new cluster's logs. */
    static void createLogs(Disk disk, long nextFullXid) {
        XactModule module = new XactModule(disk, DATA);
        counters(module, nextFullXid);
        int xid = TransactionId.xidOf(nextFullXid);
        module.commitLog().zeroPageNow(CommitLog.pageOf(xid));
        module.commitLog().zeroPageNow(CommitLog.pageOf(TransactionId.retreat(xid)));
        module.multiXacts().zeroOffsetsPageNow(0);
        module.multiXacts().zeroMembersPageNow(0);
        module.checkpoint(0);
    }

    /** Logs at the end of a recovery that replayed nothing. */
    static XactModule recovered(Disk disk, long nextFullXid) {
        XactModule module = new XactModule(disk, DATA);
        counters(module, nextFullXid);
        module.beforeRedo(null);
        module.afterRedo(null);
        module.afterRecovery(null);
        return module;
    }

    static XactModule module(long nextFullXid) {
        SimulatedDisk disk = disk();
        createLogs(disk, nextFullXid);
        return recovered(disk, nextFullXid);
    }

    static TransactionManager manager(XactModule module, XactWal wal, XactOptions options) {
        return TransactionManager.start(
                module, options, wal, SILENT, (locators, count) -> {}, new AtomicLong(1)::get);
    }

    static XactOptions options(int sessions, int cachedSubxids) {
        return new XactOptions(sessions, cachedSubxids, 200_000_000, 400_000_000, 0);
    }

    /** Counts bytes and keeps nothing. */
    static class CountingWal implements XactWal {
        private final AtomicLong end = new AtomicLong(0x1000);
        volatile long flushed;

        @Override
        public long insert(WalRecordBuilder record) {
            return end.addAndGet(record.encodedLength() + 7L & ~7L);
        }

        @Override
        public synchronized void flush(long lsn) {
            flushed = Math.max(flushed, lsn);
        }

        @Override
        public void flushSoon(long lsn) {}
    }
}
