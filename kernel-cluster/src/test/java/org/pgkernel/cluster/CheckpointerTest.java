package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.*;

import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.testkit.FaultyDisk;
import org.pgkernel.testkit.FaultyDisk.Call;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.wal.WalRecordBuilder;

/** Checkpoints of a running cluster, stepped by hand. */
class CheckpointerTest {
    private static final int REL = 20_000;
    private static final int NOOP = 0x20;

    private final SimulatedDisk medium = new SimulatedDisk(1);
    private final FaultyDisk disk = new FaultyDisk(medium);
    private final TestRun.HandClock clock = new TestRun.HandClock();
    private Cluster cluster;
    private SmgrRelation relation;

    @BeforeEach
    void open() {
        Cluster.create(TestRun.DATA, TestRun.create(medium));
        // The first time it is opened it describes its catalogue, the second time it logs the hints
        // that it finds out when it reads that.
        open(disk).close();
        open(disk).close();
        cluster = open(disk);
        relation = cluster.pool().smgr().open(1663, ClusterCreation.DATABASE, REL);
        relation.create(ForkNumber.MAIN, false);
    }

    private Cluster open(Disk on) {
        return Cluster.open(TestRun.DATA, TestRun.options(on, clock));
    }

    @AfterEach
    void close() {
        cluster.abandon();
    }

    private Kernel kernel() {
        return cluster.kernelForTests();
    }

    /** Something in the log. */
    private long log(int bytes) {
        UnsafeBuffer data = new UnsafeBuffer(new byte[bytes]);
        return kernel().primary
                .wal()
                .insert(new WalRecordBuilder().begin(RmgrIds.XLOG, NOOP, 0).data(data, 0, bytes));
    }

    /** A page of the relation that only the pool holds. */
    private void dirtyPage() {
        int buffer = cluster.pool().extend(relation, ForkNumber.MAIN, true);
        UnsafeBuffer page = new UnsafeBuffer(0, 0);
        cluster.pool().wrap(buffer, page);
        Page.init(page, 0);
        cluster.pool().markDirty(buffer);
        cluster.pool().unlock(buffer);
        cluster.pool().release(buffer);
    }

    private long checkpointLsn() {
        return TestRun.control(medium).checkPoint();
    }

    private void doWork(int steps) {
        for (int i = 0; i < steps; i++) {
            cluster.doWork();
        }
    }

    @Test
    void aCheckpointByTimeNeedsSomethingToHaveHappened() {
        long before = checkpointLsn();
        clock.pass(6, TimeUnit.MINUTES);
        doWork(50);
        assertEquals(before, checkpointLsn(), "nothing was logged");
        log(100);
        doWork(50);
        assertEquals(before, checkpointLsn(), "not yet time");
        clock.pass(6, TimeUnit.MINUTES);
        doWork(50);
        assertNotEquals(before, checkpointLsn());
        assertEquals(1, kernel().checkpointer.completed());
    }

    @Test
    void muchWalBringsACheckpointAndOldSegmentsGo() {
        long before = checkpointLsn();
        for (int i = 0; i < 64; i++) {
            log(100_000);
            cluster.doWork();
        }
        doWork(100);
        assertNotEquals(before, checkpointLsn());
        assertFalse(medium.exists(TestRun.DATA + "/pg_wal/000000010000000000000001"));
    }

    @Test
    void aSpreadCheckpointRestsBetweenItsPages() {
        for (int i = 0; i < 20; i++) {
            dirtyPage();
        }
        log(100);
        clock.pass(6, TimeUnit.MINUTES);
        doWork(100);
        assertTrue(kernel().checkpointer.isAtWork(), "rests");
        assertEquals(0, kernel().checkpointer.completed());
        for (int i = 0; i < 3000 && kernel().checkpointer.isAtWork(); i++) {
            clock.pass(1, TimeUnit.SECONDS);
            cluster.doWork();
        }
        assertEquals(1, kernel().checkpointer.completed());
    }

    @Test
    void whoAsksWaitsForOneThatBeginsAfterward() {
        for (int i = 0; i < 20; i++) {
            dirtyPage();
        }
        log(100);
        clock.pass(6, TimeUnit.MINUTES);
        doWork(5);
        assertTrue(kernel().checkpointer.isAtWork());
        long logged = log(100);
        cluster.checkpoint();
        assertEquals(2, kernel().checkpointer.completed());
        assertTrue(TestRun.control(medium).checkPointRedo() >= logged);
    }

    @Test
    @DisplayName(
            "R11: a checkpoint that fails half-way leaves the old one in force and is made up for")
    void aFailedCheckpointCanBeRetried() {
        dirtyPage();
        log(100);
        long before = checkpointLsn();
        disk.fail(Call.WRITE, "/" + REL, DiskException.ENOSPC);
        for (int i = 0; i < 2; i++) {
            KernelException e = assertThrows(KernelException.class, cluster::checkpoint);
            assertTrue(e.getMessage().contains("" + REL), e.getMessage());
            assertEquals(before, checkpointLsn());
        }
        disk.clear(Call.WRITE);
        // Another one than the failed, and redo from the old one still finds its WAL.
        cluster.checkpoint();
        assertNotEquals(before, checkpointLsn());
        assertEquals(1, kernel().checkpointer.completed());
        cluster.close();
        cluster = open(disk);
        assertEquals(0, cluster.report().records());
    }

    @Test
    @DisplayName("R11: a crash after a failed checkpoint recovers from the one before")
    void aCrashAfterAFailedCheckpoint() {
        dirtyPage();
        log(100);
        kernel().primary.wal().flush(log(100));
        disk.fail(Call.WRITE, "/" + REL, DiskException.ENOSPC);
        assertThrows(KernelException.class, cluster::checkpoint);
        cluster.abandon();
        disk.clear(Call.WRITE);
        cluster = open(disk);
        assertEquals(2, cluster.report().records());
    }

    @Test
    void aSyncThatFailsStopsTheClusterAndEverybodyIsTold() {
        dirtyPage();
        log(100);
        disk.fail(Call.SYNC, "/" + REL, DiskException.EIO);
        assertThrows(KernelStoppedException.class, cluster::checkpoint);
        disk.clear(Call.SYNC);
        KernelStoppedException later =
                assertThrows(KernelStoppedException.class, cluster::checkpoint);
        assertTrue(later.getMessage().contains("has to be opened again"), later.getMessage());
        assertThrows(KernelStoppedException.class, cluster::doWork);
        assertThrows(KernelStoppedException.class, cluster::close);
        cluster = open(disk);
        cluster.checkpoint();
    }

    @Test
    void withoutThreadsNobodyWorksBehindTheCallersBack() {
        assertEquals(0, cluster.doWork());
    }

    @Test
    void threadsDoTheSame() {
        cluster.abandon();
        cluster =
                Cluster.open(
                        TestRun.DATA,
                        TestRun.options(disk, clock)
                                .withRun(
                                        TestRun.run(System::nanoTime)
                                                .withWorkers(RunOptions.Workers.THREADS)));
        long before = checkpointLsn();
        log(100);
        cluster.checkpoint();
        assertNotEquals(before, checkpointLsn());
        cluster.close();
        assertThrows(IllegalStateException.class, cluster::doWork);
    }
}
