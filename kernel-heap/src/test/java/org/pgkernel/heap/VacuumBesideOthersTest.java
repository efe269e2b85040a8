package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.pgkernel.fsm.RelationTruncation;
import org.pgkernel.xact.FreezeSettings;
import org.pgkernel.xact.LockMode;
import org.pgkernel.xact.LockParking;
import org.pgkernel.xact.SessionLocks;

/** Vacuum in one thread, writers and a reader in others, all with their locks on the table. */
final class VacuumBesideOthersTest {
    private static final int WRITERS = 3;
    private static final int TRANSACTIONS = 120;

    private final VacuumRig v = new VacuumRig(9);
    private final AtomicInteger running = new AtomicInteger(WRITERS);

    @Test
    void rowsAreThoseOfTheWritersWhateverVacuumDoes() throws Exception {
        List<TreeMap<Integer, String>> models = new ArrayList<>();
        ExecutorService threads = Executors.newFixedThreadPool(WRITERS + 2);
        try {
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < WRITERS; i++) {
                TreeMap<Integer, String> model = new TreeMap<>();
                models.add(model);
                HeapRig.Session session = v.rig.session();
                int number = i;
                all.add(threads.submit((Callable<Void>) () -> write(session, number, model)));
            }
            HeapRig.Session reader = v.rig.session();
            all.add(threads.submit((Callable<Void>) () -> read(reader)));
            HeapRig.Session vacuum = v.rig.session();
            all.add(threads.submit((Callable<Void>) () -> vacuum(vacuum)));
            for (Future<?> one : all) {
                one.get();
            }
        } finally {
            threads.shutdownNow();
        }
        TreeMap<Integer, String> expected = new TreeMap<>();
        models.forEach(expected::putAll);
        TreeMap<Integer, String> found = new TreeMap<>();
        VacuumRig.Worker worker = v.worker();
        for (String row : worker.rows().values()) {
            found.put(Integer.valueOf(row.substring(1, row.indexOf(','))), row);
        }
        assertEquals(expected, found);
        worker.vacuum();
        assertEquals(expected.size(), worker.rows().size());
        assertEquals(expected.size(), v.check());
        v.checkEveryCut();
        v.close();
    }

    private static SessionLocks locks(HeapRig.Session session) {
        return session.session.locks();
    }

    /** Rows of its own; now and then all of them go, so that the end of the table gets empty. */
    private Void write(HeapRig.Session session, int number, TreeMap<Integer, String> model) {
        Random random = new Random(number);
        TreeMap<Integer, Long> places = new TreeMap<>();
        int next = 0;
        try {
            for (int i = 0; i < TRANSACTIONS; i++) {
                TreeMap<Integer, String> rows = new TreeMap<>(model);
                TreeMap<Integer, Long> tids = new TreeMap<>(places);
                session.begin();
                locks(session).lockRelation(HeapRig.DB, VacuumRig.REL, LockMode.ROW_EXCLUSIVE);
                session.nextCommand();
                for (int k = random.nextInt(20); k >= 0; k--) {
                    if (rows.isEmpty() || random.nextInt(3) == 0) {
                        int id = next++ * WRITERS + number;
                        String text = "i".repeat(random.nextInt(900));
                        tids.put(id, session.insert(v.table, id, text));
                        rows.put(id, "[" + id + ", " + text + "]");
                    } else {
                        change(session, random, rows, tids);
                    }
                    session.nextCommand();
                }
                if (random.nextInt(15) == 0) {
                    for (long tid : tids.values()) {
                        assertEquals(TupleOutcome.OK, session.delete(v.table, tid));
                    }
                    tids.clear();
                    rows.clear();
                }
                if (random.nextInt(4) == 0) {
                    session.rollback();
                } else {
                    session.commit();
                    model.clear();
                    model.putAll(rows);
                    places = tids;
                }
            }
            return null;
        } finally {
            running.decrementAndGet();
        }
    }

    private void change(
            HeapRig.Session session,
            Random random,
            TreeMap<Integer, String> rows,
            TreeMap<Integer, Long> tids) {
        int id = new ArrayList<>(rows.keySet()).get(random.nextInt(rows.size()));
        if (random.nextInt(3) == 0) {
            assertEquals(TupleOutcome.OK, session.delete(v.table, tids.remove(id)));
            rows.remove(id);
        } else {
            String text = "u".repeat(random.nextInt(400));
            assertEquals(TupleOutcome.OK, session.update(v.table, tids.get(id), id, text));
            tids.put(id, session.updater.newTid());
            rows.put(id, "[" + id + ", " + text + "]");
        }
    }

    /** What a snapshot sees it goes on to see. */
    private Void read(HeapRig.Session session) {
        while (running.get() > 0) {
            session.begin();
            locks(session).lockRelation(HeapRig.DB, VacuumRig.REL, LockMode.ACCESS_SHARE);
            session.nextCommand();
            TreeMap<Long, String> first = session.rows(v.table, session.mvcc);
            for (int i = 0; i < 5; i++) {
                assertEquals(first, session.rows(v.table, session.mvcc));
            }
            session.rollback();
        }
        return null;
    }

    private Void vacuum(HeapRig.Session session) {
        HeapVacuum vacuum =
                new HeapVacuum(
                        session.backend,
                        new HeapTruncation(
                                session.backend,
                                new RelationTruncation(v.rig.wal, v.checkpoints),
                                relation ->
                                        new SessionTruncationLock(
                                                locks(session),
                                                LockParking.THREADS,
                                                HeapRig.DB,
                                                VacuumRig.REL)));
        long deleted = 0;
        int round = 0;
        while (running.get() > 0) {
            VacuumOptions options = VacuumOptions.DEFAULT;
            if (round++ % 3 == 0) {
                options = options.withFreeze(FreezeSettings.FREEZE);
            }
            session.session.begin();
            session.session.vacuums();
            locks(session).lockRelation(HeapRig.DB, VacuumRig.REL, LockMode.SHARE_UPDATE_EXCLUSIVE);
            VacuumResult result =
                    vacuum.vacuum(v.table, v.history, options, null, VacuumListener.NONE);
            if (result.frozenXid() != 0) {
                v.history =
                        new RelationHistory(
                                result.frozenXid(),
                                result.minMulti(),
                                result.pages(),
                                result.liveTuples());
            }
            deleted += result.deletedTuples();
            session.rollback();
        }
        assertTrue(deleted > 0);
        return null;
    }
}
