package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.disk.PosixDisk;

class TransactionAllocationTest {
    @TempDir Path directory;

    @Test
    void transactionsSavepointsSnapshotsAndLocksAllocateNothing() throws IOException {
        for (String name :
                List.of(
                        "pg_xact",
                        "pg_subtrans",
                        "pg_commit_ts",
                        "pg_multixact/offsets",
                        "pg_multixact/members")) {
            Files.createDirectories(directory.resolve(name));
        }
        XactModule module = new XactModule(new PosixDisk(), directory.toString());
        XactFixture.counters(module, 1000);
        module.commitLog().zeroPageNow(0);
        module.subTrans().zeroPage(0);
        TransactionManager manager =
                XactFixture.manager(
                        module, new XactFixture.CountingWal(), XactFixture.options(4, 8));
        TransactionSession session = manager.openSession(5);
        TransactionSession other = manager.openSession(5);
        Snapshot snapshot = session.newSnapshot();
        Horizons horizons = new Horizons();
        // Few enough that most runs use no new page of pg_subtrans, whose writing allocates.
        long bytes =
                XactAllocationTest.bytesOfWarm(
                        () -> {
                            for (int i = 0; i < 300; i++) {
                                other.begin();
                                other.xid();
                                session.begin();
                                session.snapshot(snapshot);
                                session.xid();
                                lock(session, i);
                                int savepoint = session.savepoint();
                                session.xid();
                                lock(session, i + 1);
                                session.rollbackTo(savepoint);
                                session.snapshot(snapshot);
                                session.snapshot(snapshot);
                                manager.horizons(5, horizons);
                                session.commit(i % 2 == 0);
                                other.rollback();
                            }
                        });
        assertTrue(bytes < 2_000, "bytes for 300 transactions: " + bytes);
    }

    private static void lock(TransactionSession session, int i) {
        SessionLocks locks = session.locks();
        for (int rel = i % 3; rel < 4; rel++) {
            locks.lockRelation(5, rel, LockMode.ROW_EXCLUSIVE);
        }
        locks.lockTuple(5, 1, i, LockMode.EXCLUSIVE);
        locks.unlockTuple(5, 1, i, LockMode.EXCLUSIVE);
    }
}
