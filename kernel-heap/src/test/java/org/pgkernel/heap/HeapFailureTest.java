package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.bufmgr.BufferScope;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.testkit.DiskCall;
import org.pgkernel.testkit.Fault;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.wal.WalRecordBuilder;

class HeapFailureTest {
    private static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(Attribute.of("a", "int4"), Attribute.of("b", "text"));

    /** HEAP-22: the log cannot be written in the middle of a critical section. */
    @Test
    void aChangeThatCannotBeLoggedStopsTheKernelAndNoPageIsWrittenAfterIt() {
        HeapRig rig = new HeapRig(1, 512);
        HeapRelation table = rig.table(20000, COLUMNS);
        HeapRig.Session session = rig.session();
        session.begin();
        session.insert(table, 1, "kept");
        session.commit();
        rig.pool.flushAll();
        byte[] file = rig.disk.content("/data/base/5/20000");
        // All but the end of the ring.
        byte[] filler = new byte[HeapRig.RING - 6000];
        rig.wal.insert(
                new WalRecordBuilder()
                        .begin(RmgrIds.XLOG, 0x20, 0)
                        .data(new UnsafeBuffer(filler), 0, filler.length));
        session.begin();
        rig.disk.plan(Fault.at(Fault.Effect.EIO, DiskCall.WRITE, 1));
        KernelStoppedException stopped =
                assertThrows(
                        KernelStoppedException.class,
                        () -> {
                            for (int i = 0; i < 7; i++) {
                                session.insert(table, i, "x".repeat(1000));
                            }
                        });
        assertTrue(stopped.getMessage().contains("WAL could not be written"), stopped.getMessage());
        rig.disk.clearFaults();
        assertThrows(KernelStoppedException.class, () -> session.insert(table, 2, "no"));
        assertThrows(KernelStoppedException.class, () -> rig.pool.flushAll());
        assertArrayEquals(file, rig.disk.content("/data/base/5/20000"));
        try (HeapRig after = rig.crash(SimulatedDisk.KEEP_ALL)) {
            HeapRig.Session reader = after.session();
            reader.begin();
            assertEquals(
                    "{1=[1, kept]}",
                    reader.rows(after.table(20000, COLUMNS), reader.mvcc).toString());
            reader.commit();
        }
    }

    @Test
    void aPageThatCannotBeReadIsAnErrorAfterWhichTheTransactionGoesOn() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            session.begin();
            session.insert(table, 1, "kept");
            session.commit();
            rig.checkpoint();
            rig.pool.dropRelationForks(
                    table.storage(), new ForkNumber[] {ForkNumber.MAIN}, new int[] {0}, 1);
            session.begin();
            rig.disk.plan(Fault.at(Fault.Effect.EIO, DiskCall.READ, 1));
            assertThrows(
                    DiskException.class,
                    () -> {
                        try (BufferScope statement = session.buffers.enter("statement")) {
                            session.insert(table, 2, "no");
                        }
                    });
            rig.disk.clearFaults();
            assertEquals(0, session.buffers.pinnedBuffers());
            session.insert(table, 3, "yes");
            session.commit();
            session.begin();
            assertEquals("{1=[1, kept], 2=[3, yes]}", session.rows(table, session.mvcc).toString());
            session.commit();
            rig.checkRedo(table);
        }
    }
}
