package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.pgkernel.fsm.FsmOptions;
import org.pgkernel.fsm.FsmPolicy;
import org.pgkernel.testkit.CrashSearch;
import org.pgkernel.testkit.SimulatedDisk;

/**
 * Two sessions insert into a table with long values, in every way there is, with savepoints and
 * rollbacks, beside a model of who may see which row.
 */
class HeapInsertProperties {
    private static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(
                    Attribute.of("a", "int4"),
                    Attribute.of("b", "text"),
                    Attribute.of("c", "text").stored(Attribute.EXTERNAL),
                    Attribute.of("d", "int8"));

    /** A row's inserter, as the model knows it. */
    private enum Fate {
        RUNS,
        COMMITTED,
        ABORTED
    }

    private static final class Row {
        final long tid;
        final String text;
        final Worker inserter;

        /** Savepoint it was inserted under. */
        int level;

        /** Command of its transaction. */
        final int command;

        Fate fate = Fate.RUNS;

        /** When it committed, by the model's clock. */
        int committedAt;

        Row(long tid, String text, Worker inserter, int level, int command) {
            this.tid = tid;
            this.text = text;
            this.inserter = inserter;
            this.level = level;
            this.command = command;
        }
    }

    /** One session and what the model knows of it. */
    private static final class Worker {
        HeapRig.Session session;
        BulkInsert bulk;
        boolean inTransaction;
        int snapshotAt;
        int command;
        int level;
    }

    private static final class History implements CrashSearch.Run {
        private final Random random;
        private final boolean images;
        private final boolean synchronous;
        private final List<Row> rows = new ArrayList<>();
        private final Worker[] workers = {new Worker(), new Worker()};
        private HeapRig rig;
        private HeapRelation table;
        private int clock;
        private int values;

        /** A commit is under way: a crash leaves open what became of it. */
        private Worker committing;

        private final FsmOptions fsm;

        History(long seed, FsmPolicy policy) {
            fsm = FsmOptions.of(policy);
            random = new Random(seed);
            images = random.nextBoolean();
            synchronous = random.nextInt(4) > 0;
        }

        @Override
        public void workload(SimulatedDisk disk) {
            run(disk, 60);
        }

        void run(SimulatedDisk disk, int steps) {
            rig = new HeapRig(disk, fsm);
            rig.wal.fullPageWrites(images);
            table = rig.toasted(20000, COLUMNS);
            for (Worker worker : workers) {
                worker.session = rig.session();
                worker.bulk = new BulkInsert(worker.session.backend);
            }
            for (int i = 0; i < steps; i++) {
                step(workers[random.nextInt(2)]);
            }
        }

        private void step(Worker worker) {
            if (!worker.inTransaction) {
                if (random.nextInt(6) == 0
                        && !workers[0].inTransaction
                        && !workers[1].inTransaction) {
                    // The redo point is safe only with images, where writes may be torn.
                    rig.wal.fullPageWrites(true);
                    rig.checkpoint();
                    return;
                }
                worker.session.begin();
                worker.inTransaction = true;
                worker.snapshotAt = clock;
                worker.command = 0;
                worker.level = 0;
                return;
            }
            switch (random.nextInt(12)) {
                case 0, 1, 2 -> insert(worker, null);
                case 3 -> insert(worker, worker.bulk);
                case 4, 5 -> insertMany(worker);
                case 6 -> {
                    worker.session.nextCommand();
                    worker.command++;
                    worker.snapshotAt = clock;
                }
                case 7 -> worker.level = worker.session.session.savepoint();
                case 8 -> rollbackTo(worker);
                case 9 -> release(worker);
                case 10 -> end(worker, random.nextInt(4) > 0);
                default -> check(worker);
            }
        }

        private Object[] values() {
            int number = values++;
            String b = random.nextInt(4) == 0 ? null : "b".repeat(random.nextInt(300));
            String c =
                    switch (random.nextInt(12)) {
                        case 0 -> null;
                        case 1, 2 -> noise(1900 + random.nextInt(6000));
                        default -> noise(random.nextInt(400));
                    };
            return new Object[] {number, b, c, random.nextLong()};
        }

        private String noise(int length) {
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < length; i++) {
                text.append((char) ('a' + random.nextInt(26)));
            }
            return text.toString();
        }

        private static String text(Object[] values) {
            return List.of(
                            String.valueOf(values[0]),
                            String.valueOf(values[1]),
                            String.valueOf(values[2]),
                            String.valueOf(values[3]))
                    .toString();
        }

        private void insert(Worker worker, BulkInsert bulk) {
            Object[] values = values();
            long tid = worker.session.inserter.insert(table, HeapRig.row(table, values), bulk);
            rows.add(new Row(tid, text(values), worker, worker.level, worker.command));
        }

        private void insertMany(Worker worker) {
            int count = 1 + random.nextInt(random.nextInt(5) == 0 ? 120 : 12);
            RowValues[] many = new RowValues[count];
            String[] texts = new String[count];
            long[] tids = new long[count];
            for (int i = 0; i < count; i++) {
                Object[] values = values();
                many[i] = HeapRig.row(table, values);
                texts[i] = text(values);
            }
            worker.session.inserter.multiInsert(
                    table, many, count, tids, random.nextBoolean() ? worker.bulk : null);
            for (int i = 0; i < count; i++) {
                rows.add(new Row(tids[i], texts[i], worker, worker.level, worker.command));
            }
        }

        private void rollbackTo(Worker worker) {
            if (worker.level > 0) {
                int to = 1 + random.nextInt(worker.level);
                worker.bulk.close();
                worker.session.session.rollbackTo(to);
                for (Row row : rows) {
                    if (row.inserter == worker && row.fate == Fate.RUNS && row.level >= to) {
                        row.fate = Fate.ABORTED;
                    }
                }
                worker.level = to;
            }
        }

        private void release(Worker worker) {
            if (worker.level > 0) {
                int to = 1 + random.nextInt(worker.level);
                worker.session.session.release(to);
                for (Row row : rows) {
                    if (row.inserter == worker && row.fate == Fate.RUNS && row.level >= to) {
                        row.level = to - 1;
                    }
                }
                worker.level = to - 1;
            }
        }

        private void end(Worker worker, boolean commit) {
            worker.bulk.close();
            if (commit) {
                committing = worker;
                worker.session.session.commit(synchronous);
                worker.session.session.forgetSnapshots();
                worker.session.backend.endTransaction();
                committing = null;
            } else {
                worker.session.rollback();
            }
            clock++;
            for (Row row : rows) {
                if (row.inserter == worker && row.fate == Fate.RUNS) {
                    row.fate = commit ? Fate.COMMITTED : Fate.ABORTED;
                    row.committedAt = clock;
                }
            }
            worker.inTransaction = false;
        }

        /** Every kind of snapshot shows what the model says. */
        private void check(Worker worker) {
            HeapRig.Session session = worker.session;
            TreeMap<Long, String> mvcc = new TreeMap<>();
            TreeMap<Long, String> self = new TreeMap<>();
            TreeMap<Long, String> dirty = new TreeMap<>();
            TreeMap<Long, String> any = new TreeMap<>();
            for (Row row : rows) {
                boolean own = row.inserter == worker && row.fate == Fate.RUNS;
                boolean committed = row.fate == Fate.COMMITTED;
                if (own && row.command < worker.command
                        || committed && row.committedAt <= worker.snapshotAt) {
                    mvcc.put(row.tid, row.text);
                }
                if (own || committed) {
                    self.put(row.tid, row.text);
                }
                if (row.fate != Fate.ABORTED) {
                    dirty.put(row.tid, row.text);
                }
                any.put(row.tid, row.text);
            }
            assertEquals(mvcc, session.rows(table, session.mvcc));
            assertEquals(self, session.rows(table, HeapSnapshot.SELF));
            assertEquals(dirty, session.rows(table, HeapSnapshot.DIRTY));
            assertEquals(any.keySet(), tids(session, HeapSnapshot.ANY));
            // What aborted may go, whoever else runs.
            assertEquals(
                    dirty.keySet(),
                    tids(session, HeapSnapshot.nonVacuumable(session.backend.horizon)));
            for (long tid : any.keySet()) {
                assertEquals(mvcc.containsKey(tid), session.fetch.fetch(table, tid, session.mvcc));
                assertEquals(
                        mvcc.containsKey(tid), session.fetch.fetchHot(table, tid, session.mvcc));
            }
            session.fetch.close();
        }

        private Set<Long> tids(HeapRig.Session session, HeapSnapshot sees) {
            Set<Long> tids = new TreeSet<>();
            session.scan.begin(table, sees);
            while (session.scan.next()) {
                tids.add(session.scan.tuple().tid());
            }
            return tids;
        }

        void finish() {
            for (Worker worker : workers) {
                if (worker.inTransaction) {
                    end(worker, true);
                }
                worker.bulk.close();
            }
            rig.checkRedo(table, table.toast());
            rig.close();
        }

        @Override
        public void verify(SimulatedDisk found) {
            if (rig == null) {
                return;
            }
            try (HeapRig after = rig.recovered(found)) {
                HeapRelation recovered = after.toasted(20000, COLUMNS);
                HeapRig.Session session = after.session();
                session.begin();
                TreeMap<Long, String> there = session.rows(recovered, session.mvcc);
                // Of a recovery that was crashed in its turn.
                there.values().removeIf(text -> text.startsWith("[-1,"));
                TreeMap<Long, String> must = new TreeMap<>();
                TreeMap<Long, String> may = new TreeMap<>();
                for (Row row : rows) {
                    boolean open = row.inserter == committing && row.fate == Fate.RUNS;
                    if (row.fate == Fate.COMMITTED || open) {
                        may.put(row.tid, row.text);
                        if (!open && synchronous) {
                            must.put(row.tid, row.text);
                        }
                    }
                }
                for (var entry : there.entrySet()) {
                    assertEquals(may.get(entry.getKey()), entry.getValue(), "never committed");
                }
                for (var entry : must.entrySet()) {
                    assertEquals(entry.getValue(), there.get(entry.getKey()), "lost");
                }
                session.insert(recovered, -1, "goes on", noise(3000), 1L);
                session.commit();
            }
        }
    }

    /** HEAP-19. */
    @Property(tries = 150)
    void everySnapshotShowsWhatTheModelSaysAndRedoMakesTheSamePages(
            @ForAll long seed, @ForAll FsmPolicy policy) {
        History history = new History(seed, policy);
        history.run(HeapRig.freshDisk(seed), 150);
        history.finish();
    }

    /** HEAP-20. */
    @Property(tries = 12)
    void afterACrashAnywhereWhatWasCommittedIsThereAndNothingElse(
            @ForAll long seed, @ForAll FsmPolicy policy) {
        CrashSearch.of("heap-insert", HeapRig.freshDisk(seed), () -> new History(seed, policy))
                .seed(seed)
                .mostCrashes(12)
                .outcomes(2)
                .crashesInRecovery(2)
                .run();
    }
}
