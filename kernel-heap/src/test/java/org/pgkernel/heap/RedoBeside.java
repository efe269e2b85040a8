package org.pgkernel.heap;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.agrona.BufferUtil;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.BufferPoolOptions;
import org.pgkernel.fsm.FsmRecovery;
import org.pgkernel.recovery.CoreRecoveryModuleProvider;
import org.pgkernel.recovery.RecoveryEnvironment;
import org.pgkernel.recovery.RecoveryModule;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.wal.WalReader;
import org.pgkernel.xact.XactModuleProvider;

/** Redo of a rig's WAL on an empty disk beside it, and whether it makes the same pages. */
final class RedoBeside {
    private final HeapRig rig;

    RedoBeside(HeapRig rig) {
        this.rig = rig;
    }

    /**
     * Replays all WAL from the beginning on an empty disk and compares each page of the tables with
     * the pool's, masked as PostgreSQL's wal_consistency_checking does, and that every all-visible
     * bit of the map is one of ours. Blocks that no record tells of are pages of zeros here, or not
     * there.
     */
    void check(HeapRelation... tables) {
        replay(
                (at, replayed) -> {},
                (at, replayed) -> {
                    if (at != rig.wal.insertLsn()) {
                        throw new AssertionError("redo ended at " + at);
                    }
                    for (HeapRelation table : tables) {
                        SmgrRelation storage = table.storage();
                        SmgrRelation other =
                                replayed.smgr()
                                        .open(
                                                storage.spcOid(),
                                                storage.dbOid(),
                                                storage.relNumber());
                        compare(storage, replayed, other, ForkNumber.MAIN);
                        compare(storage, replayed, other, ForkNumber.VISIBILITY_MAP);
                    }
                });
    }

    /** What a replay has made so far. */
    interface Replay {
        void at(long endOfLastRecord, BufferPool pool);
    }

    /** Replays all WAL from the beginning on an empty disk, which is shown after each record. */
    void replay(Replay afterEach, Replay atEnd) {
        rig.wal.flush(rig.wal.insertLsn());
        SimulatedDisk other = HeapRig.freshDisk(1);
        copyWal(other);
        StorageManager otherSmgr =
                new StorageManager(
                        other,
                        HeapRig.DATA,
                        StorageManager.SEGMENT_BLOCKS,
                        SizePolicy.SHARED,
                        new SyncRequests(other, HeapRig.DATA));
        otherSmgr.inRecovery(true);
        List<RecoveryModule> otherModules = new ArrayList<>();
        try (BufferPool otherPool =
                BufferPool.open(
                        BufferPoolOptions.of(rig.pool.nbuffers()).withChecksums(false),
                        otherSmgr,
                        lsn -> {})) {
            RecoveryEnvironment recovery =
                    new RecoveryEnvironment(
                            other, HeapRig.DATA, otherSmgr, otherPool, rig.fsm.creationThreshold());
            otherModules.add(new XactModuleProvider().create(recovery));
            otherModules.add(new CoreRecoveryModuleProvider().create(recovery));
            otherModules.add(new FsmRecovery().create(recovery));
            otherModules.add(new HeapRecovery().create(recovery));
            RedoContext otherContext =
                    RedoContext.standalone(otherPool, otherModules.getFirst().counters());
            otherModules.getFirst().counters().nextFullXid(HeapRig.FIRST_XID);
            otherModules.getFirst().counters().oldestXid(900, HeapRig.DB);
            otherModules.getFirst().counters().nextMulti(1, 0);
            otherModules.getFirst().counters().oldestMulti(1, HeapRig.DB);
            otherModules.forEach(module -> module.beforeRedo(otherContext));
            try (WalReader reader = HeapRig.reader(other)) {
                reader.begin(HeapRig.START);
                long end =
                        HeapRig.replay(
                                reader,
                                otherModules,
                                otherContext,
                                at -> afterEach.at(at, otherPool));
                if (otherContext.missingPages() != 0) {
                    throw new AssertionError("records for pages that no record made");
                }
                atEnd.at(end, otherPool);
            }
        }
        otherSmgr.close();
    }

    private void copyWal(SimulatedDisk to) {
        for (String name : rig.disk.list(HeapRig.DATA + "/pg_wal")) {
            byte[] content = rig.disk.content(HeapRig.DATA + "/pg_wal/" + name);
            ByteBuffer copy = ByteBuffer.allocateDirect(content.length);
            copy.put(content);
            try (DiskFile file = to.create(HeapRig.DATA + "/pg_wal/" + name)) {
                file.write(BufferUtil.address(copy), content.length, 0);
            }
        }
    }

    private void compare(
            SmgrRelation storage, BufferPool otherPool, SmgrRelation replayed, ForkNumber fork) {
        int blocks = storage.exists(fork) ? storage.nblocks(fork) : 0;
        int replayedBlocks = replayed.exists(fork) ? replayed.nblocks(fork) : 0;
        if (replayedBlocks > blocks) {
            throw new AssertionError(
                    "redo made " + replayedBlocks + " blocks of " + blocks + " of " + storage);
        }
        for (int block = 0; block < blocks; block++) {
            UnsafeBuffer mine = rig.page(storage, fork, block);
            UnsafeBuffer theirs =
                    block < replayedBlocks
                            ? HeapRig.page(otherPool, replayed, fork, block)
                            : new UnsafeBuffer(new byte[Page.SIZE]);
            if (fork == ForkNumber.MAIN) {
                PageMask.heap(mine, theirs);
            } else {
                PageMask.map(mine, theirs);
            }
            if (!mine.equals(theirs)) {
                throw new AssertionError(
                        "redo made another page of "
                                + storage
                                + " "
                                + fork
                                + " block "
                                + block
                                + ": "
                                + PageMask.difference(mine, theirs));
            }
        }
    }
}
