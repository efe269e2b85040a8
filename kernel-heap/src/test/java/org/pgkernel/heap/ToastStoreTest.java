package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.fsm.FreeSpaceMap;
import org.pgkernel.testkit.SimulatedDisk;

class ToastStoreTest {
    private static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(
                    Attribute.of("a", "int4"),
                    Attribute.of("b", "text"),
                    Attribute.of("c", "bytea").stored(Attribute.EXTERNAL),
                    Attribute.of("d", "text").compressed(Attribute.LZ4));

    private final Random random = new Random(5);

    private byte[] noise(int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }

    private String letters(int length) {
        StringBuilder text = new StringBuilder(length);
        for (int i = 0; i < length; i++) {
            text.append((char) ('a' + random.nextInt(26)));
        }
        return text.toString();
    }

    /** chunk_id of every chunk in the file, in its order. */
    private static TreeMap<Long, Integer> chunkIds(HeapRig.Session session, HeapRelation toast) {
        TreeMap<Long, Integer> ids = new TreeMap<>();
        RowValues row = new RowValues(ToastStore.COLUMNS);
        session.scan.begin(toast, HeapSnapshot.ANY);
        while (session.scan.next()) {
            session.scan.tuple().read(row);
            ids.put(session.scan.tuple().tid(), (int) row.number(0));
        }
        return ids;
    }

    @Test
    void valuesOfEverySizeComeBackAlsoAfterACrash() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.toasted(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            TreeMap<Long, String> expected = new TreeMap<>();
            for (int i = 0; i < 40; i++) {
                session.begin();
                String b = i % 3 == 0 ? null : "word ".repeat(random.nextInt(4000));
                byte[] c = letters(random.nextInt(i % 5 == 0 ? 30000 : 900)).getBytes();
                String d = letters(random.nextInt(i % 4 == 0 ? 9000 : 500));
                long tid = session.insert(table, i, b, c, d + d);
                if (i % 7 == 6) {
                    session.rollback();
                } else {
                    expected.put(
                            tid, "[" + i + ", " + b + ", " + new String(c) + ", " + d + d + "]");
                    session.commit();
                }
                if (i == 20) {
                    rig.checkpoint();
                }
            }
            assertTrue(table.toast().storage().nblocks(ForkNumber.MAIN) > 10);
            session.begin();
            assertEquals(expected, session.rows(table, session.mvcc));
            session.commit();
            rig.checkRedo(table, table.toast());
            try (HeapRig after = rig.recovered(rig.disk.found(SimulatedDisk.LOSE_ALL))) {
                HeapRelation found = after.toasted(20000, COLUMNS);
                HeapRig.Session reader = after.session();
                reader.begin();
                assertEquals(expected, reader.rows(found, reader.mvcc));
                reader.commit();
            }
        }
    }

    /** HEAP-14 (R04). */
    @Test
    void noChunkIdIsGivenOutTwiceWhateverCrashedInBetween() {
        Set<Integer> seen = new HashSet<>();
        HeapRig rig = new HeapRig(1);
        for (int crash = 0; crash < 6; crash++) {
            HeapRelation table = rig.toasted(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            Set<Integer> before = new HashSet<>(chunkIds(session, table.toast()).values());
            for (int i = 0; i < 10; i++) {
                session.begin();
                session.insert(table, i, "", noise(3000), "");
                if (i % 2 == 0) {
                    session.commit();
                } else {
                    session.rollback();
                }
                if (i == 5 && crash % 2 == 0) {
                    rig.checkpoint();
                }
            }
            Set<Integer> now = new HashSet<>(chunkIds(session, table.toast()).values());
            now.removeAll(before);
            assertEquals(10, now.size());
            for (int id : now) {
                assertTrue(seen.add(id), "id " + id + " again");
            }
            rig = rig.crash(crash % 3 == 0 ? SimulatedDisk.LOSE_ALL : 50 + crash);
        }
        rig.close();
    }

    /** After 2^32 ids the counter comes by again. */
    @Test
    void anIdThatChunksInTheTableHaveIsPassedOver() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.toasted(20000, COLUMNS);
            int[] ids = {7, 7, 8, 7, 9};
            int[] next = {0};
            HeapEnvironment wrapped =
                    new HeapEnvironment(
                            rig.pool,
                            rig.wal,
                            rig.environment.compression(),
                            rig.transactions,
                            () -> ids[next[0]++]);
            HeapRig.Session session = rig.session(wrapped, new FreeSpaceMap());
            session.begin();
            for (int i = 0; i < 3; i++) {
                session.insert(table, i, "", noise(2500), "");
            }
            session.commit();
            assertEquals(Set.of(7, 8, 9), new HashSet<>(chunkIds(session, table.toast()).values()));
        }
    }

    @Test
    void aRowReadFromTheTableIsInsertedAgainWithValuesOfItsOwn() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.toasted(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            session.begin();
            String text = letters(3000);
            byte[] data = letters(5000).getBytes();
            long first = session.insert(table, 1, text, data, "word".repeat(90000));
            session.nextCommand();
            assertTrue(session.fetch.fetch(table, first, session.mvcc));
            RowValues row = new RowValues(COLUMNS);
            session.fetch.tuple().read(row);
            long second = session.inserter.insert(table, row);
            assertTrue(row.isExternal(2), "the caller's row is as it was");
            assertArrayEquals(data, session.backend.toast().value(table, row, 2));
            session.fetch.close();
            session.nextCommand();
            TreeMap<Long, String> rows = session.rows(table, session.mvcc);
            assertEquals(rows.get(first), rows.get(second));
            assertEquals(
                    4,
                    new HashSet<>(chunkIds(session, table.toast()).values()).size(),
                    "two values each, the compressed one is short enough");
            session.commit();
            rig.checkRedo(table, table.toast());
        }
    }

    @Test
    void aChunkAddedThroughAnotherHandleIsFoundAndOneThatIsGoneIsNamed() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.toasted(20000, COLUMNS);
            HeapRelation again = rig.toasted(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            session.begin();
            session.insert(table, 1, "", noise(3000), "");
            session.insert(again, 2, "", noise(3000), "");
            session.insert(table, 3, "", noise(9000), "");
            session.nextCommand();
            assertEquals(3, session.rows(table, session.mvcc).size());
            assertEquals(3, session.rows(again, session.mvcc).size());
            session.commit();
            var chunks = chunkIds(session, table.toast());
            rig.change(
                    table.toast(),
                    TupleId.block(chunks.lastKey()),
                    page ->
                            page.putInt(
                                    HeapPage.tupleAt(page, TupleId.offset(chunks.lastKey())) + 28,
                                    77));
            session.begin();
            DamagedDataException e =
                    assertThrows(
                            DamagedDataException.class, () -> session.rows(table, session.mvcc));
            assertEquals(
                    "missing chunk number 3 for toast value "
                            + chunks.lastEntry().getValue()
                            + " rel=1663/5/20001",
                    e.getMessage());
            session.scan.close();
            session.commit();
        }
    }

    @Test
    void aRowThatFitsNoPageIsRefusedAndNothingIsHeld() {
        TupleDescriptor plain =
                TupleDescriptor.of(
                        Attribute.of("a", "int4"),
                        Attribute.of("b", "bytea").stored(Attribute.PLAIN));
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, plain);
            HeapRig.Session session = rig.session();
            session.begin();
            RefusedException e =
                    assertThrows(
                            RefusedException.class, () -> session.insert(table, 1, noise(8129)));
            assertEquals(
                    "row is too big: size 8168, maximum size 8160 rel=1663/5/20000",
                    e.getMessage());
            session.insert(table, 2, noise(8128 - 4));
            session.commit();
        }
    }

    /** The chunks that a snapshot sees. */
    private static int chunks(HeapRig.Session session, HeapRelation toast, HeapSnapshot sees) {
        int count = 0;
        session.scan.begin(toast, sees);
        while (session.scan.next()) {
            count++;
        }
        return count;
    }

    @Test
    void aValueGoesWithItsRowAndStaysWithARowThatKeepsIt() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.toasted(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            HeapRig.Session old = rig.session();
            String c = letters(5000);
            session.begin();
            long tid = session.insert(table, 1, letters(4000), c, null);
            session.commit();
            int all = 3 + 3;
            old.begin();
            assertEquals(all, chunks(old, table.toast(), old.mvcc));
            session.begin();
            assertTrue(session.fetch.fetch(table, tid, session.mvcc));
            RowValues row = new RowValues(COLUMNS);
            session.fetch.tuple().read(row);
            row.setText(1, "short now");
            assertEquals(TupleOutcome.OK, session.updater.update(table, tid, row, false));
            long next = session.updater.newTid();
            session.fetch.close();
            session.nextCommand();
            assertEquals(3, chunks(session, table.toast(), session.mvcc), "only the other's");
            assertEquals(
                    "[1, short now, " + c + ", null]", session.rows(table, session.mvcc).get(next));
            session.rollback();
            session.begin();
            assertEquals(all, chunks(session, table.toast(), session.mvcc), "as it was");
            assertEquals(TupleOutcome.OK, session.delete(table, tid));
            session.nextCommand();
            assertEquals(0, chunks(session, table.toast(), session.mvcc));
            session.commit();
            assertEquals(
                    1, old.rows(table, old.mvcc).size(), "whoever sees the row has its values");
            old.commit();
            rig.checkRedo(table, table.toast());
        }
    }

    @Test
    void theIndexInMemoryForgetsValuesThatAreGone() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.toasted(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            int most = 0;
            for (int i = 0; i < 2500; i++) {
                session.begin();
                long tid = session.insert(table, i, "", noise(2040), "");
                session.nextCommand();
                if (i % 50 != 0) {
                    session.delete(table, tid);
                }
                session.commit();
                most = Math.max(most, table.toast().chunks().size());
            }
            assertTrue(most < 4500, "entries " + most);
            session.begin();
            assertEquals(50, session.rows(table, session.mvcc).size());
            session.commit();
        }
    }
}
