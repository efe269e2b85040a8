package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.*;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.heap.RowValues;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.testkit.SimulatedDisk;

/** What is in the vacuum worker's way does not keep it from the rest. */
class VacuumWorkerTest {
    private final SimulatedDisk disk = new SimulatedDisk(1);
    private final TestRun.HandClock clock = new TestRun.HandClock();
    private Cluster cluster;
    private Backend backend;
    private VacuumWorker worker;

    @BeforeEach
    void open() {
        Cluster.create(TestRun.DATA, TestRun.create(disk));
        cluster = Cluster.open(TestRun.DATA, TestRun.options(disk, clock));
        backend = cluster.newBackend();
        worker = cluster.kernelForTests().vacuumWorker;
    }

    @AfterEach
    void close() {
        cluster.abandon();
    }

    /** A table of which all rows are deleted. */
    private Table deleted(String name) {
        backend.begin();
        Table table = backend.createTable(name, BackendTest.COLUMNS, TableOptions.DEFAULT);
        long[] tids = new long[100];
        RowValues row = table.newRow();
        for (int i = 0; i < tids.length; i++) {
            row.clear();
            row.setNumber(0, i);
            row.setText(1, "word");
            tids[i] = table.insert(row);
        }
        backend.commit();
        backend.begin();
        for (long tid : tids) {
            table.delete(tid);
        }
        backend.commit();
        return table;
    }

    /** Else closing the cluster, which ends the worker first, would wait for that transaction. */
    @Test
    void aTableThatSomebodyHasLockedIsPassedOver() {
        deleted("t");
        backend.begin();
        backend.truncate("t");
        clock.pass(2, TimeUnit.MINUTES);
        assertEquals(0, assertTimeoutPreemptively(Duration.ofSeconds(20), worker::doWork));
        backend.rollback();
        clock.pass(2, TimeUnit.MINUTES);
        assertEquals(1, worker.doWork(), "it comes back");
    }

    /** PostgreSQL's worker goes on with the next table, too (do_autovacuum). */
    @Test
    void aDamagedTableDoesNotKeepItFromTheOthers() {
        Table damaged = deleted("damaged");
        deleted("whole");
        backend.begin();
        SmgrRelation storage = damaged.forReading().storage();
        backend.commit();
        BackendBuffers buffers = cluster.pool().backend("test");
        UnsafeBuffer page = new UnsafeBuffer(0L, 0);
        try (buffers) {
            int buffer = buffers.read(storage, ForkNumber.MAIN, 0, ReadMode.NORMAL, null);
            cluster.pool().wrap(buffer, page);
            buffers.lockExclusive(buffer);
            // Behind the end of the page.
            Page.setItemId(page, 1, Page.packItemId(8184, Page.LP_NORMAL, 100));
            buffers.unlock(buffer);
            buffers.release(buffer);
        }
        clock.pass(2, TimeUnit.MINUTES);
        assertEquals(1, worker.doWork());
    }
}
