package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.pgkernel.base.TransactionId;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.xact.FreezeSettings;

/**
 * Random histories of inserts, deletes, updates, row locks, commits, rollbacks and vacuums:
 * whatever vacuum does, nobody sees other rows than before.
 */
final class VacuumHistoryProperties {
    private static final int SESSIONS = 4;

    private VacuumRig v;
    private Random random;
    private final List<VacuumRig.Worker> workers = new ArrayList<>();
    private VacuumRig.Worker vacuum;

    /**
     * What each session's snapshot saw when it was taken, null without one. Its own later work is
     * of the same command until the next snapshot, so it is not seen.
     */
    private final List<TreeMap<Long, String>> seen = new ArrayList<>();

    private int nextId;

    @Property(tries = 120)
    void nobodySeesOtherRowsAfterAVacuum(
            @ForAll long seed, @ForAll @IntRange(min = 20, max = 250) int steps) {
        random = new Random(seed);
        workers.clear();
        seen.clear();
        nextId = 0;
        try (VacuumRig rig = new VacuumRig(seed)) {
            v = rig;
            vacuum = v.worker();
            for (int i = 0; i < SESSIONS; i++) {
                workers.add(v.worker());
                seen.add(null);
            }
            for (int i = 0; i < steps; i++) {
                step();
            }
            for (int i = 0; i < SESSIONS; i++) {
                end(i, true);
            }
            TreeMap<Long, String> rows = vacuum.rows();
            vacuumAndLook();
            vacuumAndLook();
            assertEquals(rows, vacuum.rows());
            assertEquals(rows.size(), v.check(), "nothing dead is left");
            v.checkEveryCut();
            crash(rows);
        }
    }

    private void crash(TreeMap<Long, String> rows) {
        v.rig.wal.flush(v.rig.wal.insertLsn());
        SimulatedDisk found = v.rig.disk.restart(random.nextInt(1000));
        try (VacuumRig after = new VacuumRig(v.rig.recovered(found))) {
            assertEquals(rows, after.worker().rows());
            after.check();
        }
    }

    private void step() {
        int at = random.nextInt(SESSIONS);
        if (!workers.get(at).session.session.inTransaction()) {
            begin(at);
            return;
        }
        switch (random.nextInt(20)) {
            case 0, 1, 2, 3, 4, 5 -> insert(at);
            case 6, 7, 8 -> delete(at);
            case 9, 10, 11 -> update(at);
            case 12 -> lock(at);
            case 13, 14 -> end(at, true);
            case 15 -> end(at, false);
            case 16 -> look(at);
            default -> vacuumAndLook();
        }
    }

    private void begin(int at) {
        VacuumRig.Worker worker = workers.get(at);
        worker.session.begin();
        seen.set(at, worker.session.rows(v.table, worker.session.mvcc));
    }

    private void end(int at, boolean commit) {
        VacuumRig.Worker worker = workers.get(at);
        if (worker.session.session.inTransaction()) {
            look(at);
            if (commit) {
                worker.session.commit();
            } else {
                worker.session.rollback();
            }
        }
        seen.set(at, null);
    }

    private void look(int at) {
        VacuumRig.Worker worker = workers.get(at);
        if (seen.get(at) != null) {
            assertEquals(seen.get(at), worker.session.rows(v.table, worker.session.mvcc));
        }
    }

    private void insert(int at) {
        VacuumRig.Worker worker = workers.get(at);
        int rows = 1 + random.nextInt(12);
        for (int i = 0; i < rows; i++) {
            String text = "r".repeat(random.nextInt(1200));
            worker.session.insert(v.table, nextId++, text);
        }
        wrote(at);
    }

    private long anyRow(int at) {
        List<Long> rows = List.copyOf(seen.get(at).keySet());
        return rows.isEmpty() ? 0 : rows.get(random.nextInt(rows.size()));
    }

    private void delete(int at) {
        for (int i = random.nextInt(6); i >= 0; i--) {
            long tid = anyRow(at);
            if (tid != 0) {
                workers.get(at).session.delete(v.table, tid);
            }
        }
        wrote(at);
    }

    private void update(int at) {
        long tid = anyRow(at);
        if (tid != 0) {
            String text = "u".repeat(random.nextInt(random.nextInt(4) == 0 ? 1500 : 300));
            workers.get(at).session.update(v.table, tid, nextId++, text);
        }
        wrote(at);
    }

    private void lock(int at) {
        long tid = anyRow(at);
        if (tid != 0) {
            RowLock[] strengths = RowLock.values();
            workers.get(at).session.lock(v.table, tid, strengths[random.nextInt(strengths.length)]);
        }
        wrote(at);
    }

    /** Takes another snapshot, half of the time: its own work is seen, and what others did. */
    private void wrote(int at) {
        if (random.nextBoolean()) {
            VacuumRig.Worker worker = workers.get(at);
            worker.session.nextCommand();
            seen.set(at, worker.session.rows(v.table, worker.session.mvcc));
        }
    }

    private void vacuumAndLook() {
        VacuumOptions options = VacuumOptions.DEFAULT.withTruncate(random.nextInt(3) > 0);
        if (random.nextBoolean()) {
            options =
                    options.withFreeze(
                            random.nextBoolean()
                                    ? FreezeSettings.FREEZE
                                    : new FreezeSettings(random.nextInt(20), 30, 0, 0));
        }
        boolean indexed = random.nextBoolean();
        if (indexed) {
            options =
                    options.withIndexes(VacuumOptions.Indexes.values()[random.nextInt(3)])
                            .withDeadTuples(1 + random.nextInt(1000));
        }
        boolean writers = false;
        for (VacuumRig.Worker worker : workers) {
            writers |= worker.session.session.inTransaction();
        }
        // The lock on the table is the truncation's alone while nobody uses the table.
        v.lock.refusals = writers ? 1000 : 0;
        int oldFrozen = v.history.frozenXid();
        VacuumResult result = vacuum.vacuum(options, indexed ? cleaner : null);
        assertTrue(TransactionId.precedesOrEquals(oldFrozen, v.history.frozenXid()));
        assertTrue(result.liveTuples() >= 0);
        v.check();
        for (int i = 0; i < SESSIONS; i++) {
            if (workers.get(i).session.session.inTransaction()) {
                look(i);
            }
        }
    }

    private final IndexCleaner cleaner =
            new IndexCleaner() {
                @Override
                public void removeEntries(DeadTuples dead) {}

                @Override
                public void cleanUp(double tuples, boolean estimated) {}
            };
}
