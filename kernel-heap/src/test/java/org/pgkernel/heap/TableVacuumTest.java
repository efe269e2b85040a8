package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.LockNotAvailableException;
import org.pgkernel.recovery.CheckpointDelay;
import org.pgkernel.xact.LockMode;
import org.pgkernel.xact.LockParking;

/** Vacuum of a table with its TOAST table, under the locks of the lock table. */
final class TableVacuumTest {
    private static final int OID = 20_000;

    private final HeapRig rig = new HeapRig(5, 256);
    private final HeapRelation toast = rig.table(OID + 1, ToastStore.COLUMNS);
    private final HeapRelation table = rig.table(OID, VacuumRig.COLUMNS, 100, toast);
    private final HeapRig.Session one = rig.session();
    private final HeapRig.Session other = rig.session();
    private final Catalogue catalogue = new Catalogue();
    private final Parking parking = new Parking();
    private final TableVacuum vacuum = new TableVacuum(one.backend, new CheckpointDelay(), parking);

    @AfterEach
    void close() {
        rig.close();
    }

    private static final class Catalogue implements TableVacuum.Catalogue {
        final Map<HeapRelation, RelationHistory> histories = new HashMap<>();
        final Map<HeapRelation, VacuumResult> results = new HashMap<>();

        @Override
        public RelationHistory history(HeapRelation relation) {
            return histories.getOrDefault(
                    relation, new RelationHistory(HeapRig.FIRST_XID - 1, 1, 0, -1));
        }

        @Override
        public void vacuumed(HeapRelation relation, VacuumResult result) {
            results.put(relation, result);
        }
    }

    /** Time passes only while somebody sleeps. */
    private static final class Parking implements LockParking {
        long nanos;
        Runnable onPark = () -> {};

        @Override
        public long nanoTime() {
            return nanos;
        }

        @Override
        public void park(Object lock, long forNanos) {
            nanos += Math.max(1, forNanos / 3); // wakes early, for no reason
            onPark.run();
        }

        @Override
        public void unpark(Thread thread) {}
    }

    /** Rows whose values are long and cannot be compressed. */
    private void fill(int rows) {
        Random random = new Random(3);
        one.begin();
        for (int i = 0; i < rows; i++) {
            StringBuilder text = new StringBuilder();
            for (int k = 0; k < 5000; k++) {
                text.append((char) (' ' + random.nextInt(95)));
            }
            one.insert(table, i, text.toString());
        }
        one.commit();
    }

    private List<Long> tids() {
        one.begin();
        TreeMap<Long, String> rows = new TreeMap<>();
        HeapScan scan = new HeapScan(one.backend).begin(table, one.mvcc);
        while (scan.next()) {
            rows.put(scan.tuple().tid(), "");
        }
        one.rollback();
        return List.copyOf(rows.keySet());
    }

    private void delete(List<Long> tids) {
        one.begin();
        tids.forEach(tid -> assertEquals(TupleOutcome.OK, one.delete(table, tid)));
        one.commit();
    }

    private static int blocks(HeapRelation relation) {
        return relation.storage().nblocks(ForkNumber.MAIN);
    }

    private VacuumResult run() {
        return vacuum.vacuum(table, VacuumOptions.DEFAULT, catalogue, VacuumListener.NONE);
    }

    @Test
    void theToastTableIsVacuumedAndCutWithItsTable() {
        fill(40);
        int before = blocks(toast);
        assertTrue(before >= 20);
        List<Long> tids = tids();
        delete(tids.subList(10, 40));
        VacuumResult result = run();
        assertEquals(10, result.liveTuples());
        assertEquals(30, result.deletedTuples());
        assertEquals(30, catalogue.results.get(toast).liveTuples());
        assertEquals(90, catalogue.results.get(toast).deletedTuples());
        assertTrue(blocks(toast) < before / 2, blocks(toast) + " of " + before);
        assertEquals(tids.subList(0, 10), tids());
        fill(20);
        assertEquals(30, tids().size());
        delete(tids());
        run();
        assertEquals(0, blocks(table));
        assertEquals(0, blocks(toast));
        rig.checkRedo(table, toast);
        fill(1);
        assertEquals(1, tids().size());
    }

    @Test
    void theTableIsLockedAgainstAnotherVacuumOnlyUntilItIsOver() {
        fill(2);
        VacuumListener listener =
                new VacuumListener() {
                    @Override
                    public void atBlock(HeapRelation relation, int block, int blocks) {
                        other.session.begin();
                        assertFalse(
                                other.session
                                        .locks()
                                        .tryLockRelation(
                                                HeapRig.DB, OID, LockMode.SHARE_UPDATE_EXCLUSIVE));
                        assertTrue(
                                other.session
                                        .locks()
                                        .tryLockRelation(HeapRig.DB, OID, LockMode.ROW_EXCLUSIVE));
                        other.session.rollback();
                    }
                };
        vacuum.vacuum(table, VacuumOptions.DEFAULT, catalogue, listener);
        other.session.begin();
        assertTrue(
                other.session.locks().tryLockRelation(HeapRig.DB, OID, LockMode.ACCESS_EXCLUSIVE));
        other.session.rollback();
        assertFalse(one.session.inTransaction());
    }

    @Test
    void itsOwnTransactionHoldsNothingBack() {
        fill(2);
        int[] oldest = new int[1];
        VacuumListener listener =
                new VacuumListener() {
                    @Override
                    public void atBlock(HeapRelation relation, int block, int blocks) {
                        other.session.begin();
                        other.session.xid();
                        other.session.commit(false);
                        var horizons = new org.pgkernel.xact.Horizons();
                        rig.transactions.horizons(HeapRig.DB, horizons);
                        oldest[0] = horizons.dataOldestNonremovable();
                    }
                };
        vacuum.vacuum(table, VacuumOptions.DEFAULT, catalogue, listener);
        assertEquals((int) rig.transactions.nextFullXid(), oldest[0]);
    }

    @Test
    void whoeverReadsTheTableKeepsItsToastTableWhole() {
        fill(40);
        delete(tids());
        int before = blocks(toast);
        other.session.begin();
        other.session.locks().lockRelation(HeapRig.DB, OID, LockMode.ACCESS_SHARE);
        run();
        assertEquals(before, blocks(toast));
        assertEquals(2 * 5_000_000_000L / 1_000_000, parking.nanos / 1_000_000, 2);
        other.session.rollback();
        run();
        assertEquals(0, blocks(toast));
        assertEquals(0, blocks(table));
    }

    @Test
    void aReaderWhoGoesSoonIsWaitedFor() {
        fill(40);
        delete(tids());
        other.session.begin();
        other.session.locks().lockRelation(HeapRig.DB, OID, LockMode.ACCESS_SHARE);
        parking.onPark =
                () -> {
                    if (parking.nanos > 300_000_000L && other.session.inTransaction()) {
                        other.session.rollback();
                    }
                };
        run();
        assertEquals(0, blocks(table));
        assertEquals(0, blocks(toast));
        assertTrue(parking.nanos < 400_000_000L);
    }

    @Test
    void anInterruptEndsTheWaitAndTheVacuum() {
        fill(40);
        delete(tids());
        other.session.begin();
        other.session.locks().lockRelation(HeapRig.DB, OID, LockMode.ACCESS_SHARE);
        parking.onPark = Thread.currentThread()::interrupt;
        assertThrows(LockNotAvailableException.class, this::run);
        assertTrue(Thread.interrupted());
        assertFalse(one.session.inTransaction());
        other.session.rollback();
        parking.onPark = () -> {};
        run();
        assertEquals(0, blocks(table));
    }
}
