package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.PageItems;
import org.pgkernel.testkit.SimulatedDisk;

class HeapInserterTest {
    private static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(Attribute.of("a", "int4"), Attribute.of("b", "text"));

    @Test
    void othersSeeARowOnceItsTransactionHasCommittedAndTheirSnapshotIsNewer() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session one = rig.session();
            HeapRig.Session two = rig.session();
            one.begin();
            long tid = one.insert(table, 7, "seven");
            assertEquals("(0,1)", TupleId.format(tid));
            assertTrue(one.rows(table, one.mvcc).isEmpty(), "its own command does not see it");
            one.nextCommand();
            assertEquals("[7, seven]", one.rows(table, one.mvcc).get(tid));
            two.begin();
            assertTrue(two.rows(table, two.mvcc).isEmpty());
            assertEquals(1, two.rows(table, HeapSnapshot.DIRTY).size());
            one.commit();
            assertTrue(two.rows(table, two.mvcc).isEmpty(), "not in the old snapshot");
            assertEquals(1, two.rows(table, HeapSnapshot.SELF).size());
            two.nextCommand();
            assertEquals(List.of("[7, seven]"), List.copyOf(two.rows(table, two.mvcc).values()));
            assertTrue(two.fetch.fetch(table, tid, two.mvcc));
            assertTrue(two.fetch.fetchHot(table, tid, two.mvcc));
            assertFalse(two.fetch.fetch(table, TupleId.of(0, 2), two.mvcc));
            assertFalse(two.fetch.fetch(table, TupleId.of(9, 1), two.mvcc));
            two.commit();
            one.begin();
            one.insert(table, 8, null);
            one.rollback();
            two.begin();
            assertEquals(1, two.rows(table, two.mvcc).size());
            assertEquals(2, two.rows(table, HeapSnapshot.ANY).size());
            two.commit();
            rig.checkRedo(table);
        }
    }

    @Test
    void rowsThatFillManyPagesAreThereAfterACrashAndRedoMakesTheSamePages() {
        try (HeapRig rig = new HeapRig(2)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            session.begin();
            for (int i = 0; i < 2000; i++) {
                session.insert(table, i, "x".repeat(i % 300));
                if (i == 700) {
                    session.commit();
                    rig.checkpoint();
                    session.begin();
                }
            }
            session.commit();
            assertTrue(table.storage().nblocks(ForkNumber.MAIN) > 40);
            rig.checkRedo(table);
            session.begin();
            var before = session.rows(table, session.mvcc);
            session.insert(table, -1, "lost");
            session.commit();
            session.begin();
            session.insert(table, -2, "lost");
            for (long outcome : new long[] {SimulatedDisk.LOSE_ALL, SimulatedDisk.KEEP_ALL, 77}) {
                try (HeapRig after = rig.recovered(rig.disk.found(outcome))) {
                    HeapRelation found = after.table(20000, COLUMNS);
                    HeapRig.Session reader = after.session();
                    reader.begin();
                    var rows = reader.rows(found, reader.mvcc);
                    assertEquals(2001, rows.size());
                    rows.values().remove("[-1, lost]");
                    assertEquals(before, rows);
                    reader.insert(found, 1, "goes on");
                    reader.commit();
                }
            }
            session.rollback();
        }
    }

    @Test
    void manyRowsGoWithOneRecordAPageAndTheirPlacesAreTold() {
        try (HeapRig rig = new HeapRig(3)) {
            HeapRelation table = rig.table(20000, COLUMNS, 80, null);
            HeapRig.Session session = rig.session();
            RowValues[] rows = new RowValues[3000];
            for (int i = 0; i < rows.length; i++) {
                rows[i] = HeapRig.row(table, i, "y".repeat(i % 50));
            }
            long[] tids = new long[rows.length];
            session.begin();
            session.insert(table, -1, "first");
            long before = rig.wal.insertLsn();
            try (BulkInsert bulk = new BulkInsert(session.backend)) {
                session.inserter.multiInsert(table, rows, rows.length, tids, bulk);
            }
            session.inserter.multiInsert(table, rows, 0, null, null);
            int blocks = table.storage().nblocks(ForkNumber.MAIN);
            assertTrue(rig.wal.insertLsn() - before < blocks * 8192L, "less than the pages");
            session.nextCommand();
            var found = session.rows(table, session.mvcc);
            assertEquals(rows.length + 1, found.size());
            for (int i = 0; i < rows.length; i++) {
                assertEquals("[" + i + ", " + "y".repeat(i % 50) + "]", found.get(tids[i]));
            }
            session.commit();
            for (int block = 0; block < blocks - 1; block++) {
                int free =
                        PageItems.heapFreeSpace(rig.page(table.storage(), ForkNumber.MAIN, block));
                assertTrue(free >= 1638 - 4 && free < 1638 + 100, "fillfactor; free " + free);
            }
            rig.checkRedo(table);
        }
    }
}
