package org.pgkernel.bufmgr;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/**
 * What one backend of the stress does with relations as a whole. A drop and a cut have the
 * relations to themselves, as the kernel's rule asks; flushes and looks run beside everything.
 */
final class StressDdl {
    private final StressRun run;
    private final BufferPool pool;
    private final Random random;
    private final long[] counters = new long[PoolCounter.values().length];

    StressDdl(StressWorker worker) {
        run = worker.run;
        pool = worker.pool;
        random = worker.random;
    }

    private StressRelation any() {
        return run.relations.get(random.nextInt(run.relations.size()));
    }

    /** What is dirty when it begins is in the files when it ends. */
    void flush(StressWorker.Operation operation) {
        StressRelation first = any();
        List<StressRelation> victims = new ArrayList<>(List.of(first));
        switch (operation) {
            case FLUSH_RELATIONS -> victims.add(any());
            case FLUSH_DATABASE -> victims = ofDatabase(first.db);
            default -> {}
        }
        List<StressRun.Written> promises = StressRun.promises(victims);
        switch (operation) {
            case FLUSH_RELATION -> pool.flushRelation(first.handle);
            case FLUSH_DATABASE -> pool.flushDatabase(first.db);
            default -> pool.flushRelations(handles(victims), victims.size());
        }
        promises.forEach(promise -> promise.check(operation.name()));
    }

    private static SmgrRelation[] handles(List<StressRelation> relations) {
        return relations.stream().map(relation -> relation.handle).toArray(SmgrRelation[]::new);
    }

    private List<StressRelation> ofDatabase(int db) {
        return new ArrayList<>(run.relations.stream().filter(r -> r.db == db).toList());
    }

    /** Locked in the order of their numbers, so that nobody waits in a circle. */
    private static void alone(List<StressRelation> victims, Runnable body) {
        victims.sort(Comparator.comparingInt(relation -> relation.slot));
        victims.forEach(relation -> relation.use.writeLock().lock());
        try {
            body.run();
        } finally {
            Collections.reverse(victims);
            victims.forEach(relation -> relation.use.writeLock().unlock());
        }
    }

    void truncate() {
        StressRelation relation = any();
        alone(new ArrayList<>(List.of(relation)), () -> truncate(relation));
    }

    private void truncate(StressRelation relation) {
        ForkNumber[] forks = StressRelation.FORKS;
        int[] cuts = new int[forks.length];
        for (int fork = 0; fork < forks.length; fork++) {
            cuts[fork] = random.nextInt(relation.handle.nblocks(forks[fork]) + 1);
        }
        pool.dropRelationForks(relation.handle, forks, cuts, forks.length);
        run.dropCalls.increment();
        assertGone(List.of(relation), cuts);
        for (int fork = 0; fork < forks.length; fork++) {
            relation.cut(fork, cuts[fork]);
            relation.handle.truncate(forks[fork], cuts[fork]);
        }
    }

    /** TRUNCATE as PostgreSQL does it, one file goes and another comes. */
    void dropRelations(int count) {
        List<StressRelation> victims = new ArrayList<>();
        while (victims.size() < count) {
            StressRelation relation = any();
            if (!victims.contains(relation)) {
                victims.add(relation);
            }
        }
        alone(
                victims,
                () -> {
                    SmgrRelation[] handles = handles(victims);
                    pool.dropRelations(handles, count);
                    run.dropCalls.increment();
                    assertGone(victims, new int[] {0, 0});
                    victims.forEach(this::disown);
                    boolean isRedo = run.plan.recovery() || random.nextBoolean();
                    run.smgr.unlinkAll(handles, count, isRedo);
                    victims.forEach(this::createAgain);
                });
    }

    private void disown(StressRelation relation) {
        for (int fork = 0; fork < StressRelation.FORKS.length; fork++) {
            run.disk.disown(run.path(relation, relation.handle.relNumber(), fork));
        }
    }

    /** Under a number that it had before, if that is free again; else under a new one. */
    private void createAgain(StressRelation relation) {
        int last = relation.handle.relNumber();
        int number;
        if (isFree(relation, last)) {
            number = last;
        } else {
            boolean free = relation.retired != 0 && isFree(relation, relation.retired);
            number = free ? relation.retired : run.newNumber();
            relation.retired = last;
        }
        run.create(relation, number);
    }

    private boolean isFree(StressRelation relation, int number) {
        return random.nextBoolean() && !run.disk.exists(run.path(relation, number, 0));
    }

    /** Its files are removed by other means; numbers in it do not come again. */
    void dropDatabase() {
        int db = 6 + random.nextInt(2);
        List<StressRelation> victims = ofDatabase(db);
        alone(
                victims,
                () -> {
                    pool.dropDatabase(db);
                    run.dropCalls.increment();
                    assertGone(victims, new int[] {0, 0});
                    victims.forEach(this::disown);
                    run.smgr.closeDatabase(db);
                    run.syncs.forgetDatabase(db);
                    boolean directories = random.nextBoolean();
                    for (StressRelation relation : victims) {
                        String directory = run.databaseDirectory(relation);
                        for (String name : run.disk.list(directory)) {
                            run.disk.unlink(directory + "/" + name);
                        }
                        if (directories) {
                            run.disk.removeDirectory(directory);
                        }
                    }
                    for (StressRelation relation : victims) {
                        relation.retired = 0;
                        run.create(relation, run.newNumber());
                    }
                });
    }

    /** After a flush the files have everything; so all can be read again. */
    void dropBuffersOnly() {
        StressRelation relation = any();
        alone(
                new ArrayList<>(List.of(relation)),
                () -> {
                    pool.flushRelation(relation.handle);
                    pool.dropRelations(new SmgrRelation[] {relation.handle}, 1);
                    run.dropCalls.increment();
                    assertGone(List.of(relation), new int[] {0, 0});
                });
    }

    private void assertGone(List<StressRelation> relations, int[] firstBlocks) {
        pool.snapshot()
                .forEach(
                        (buffer, spc, db, rel, fork, block, dirty, uses, pins) -> {
                            for (StressRelation relation : relations) {
                                SmgrRelation r = relation.handle;
                                if (r.relNumber() == rel
                                        && r.dbOid() == db
                                        && r.spcOid() == spc
                                        && block >= firstBlocks[fork]) {
                                    throw new AssertionError(
                                            "left by a drop: " + relation.place(fork, block));
                                }
                            }
                        });
    }

    /** Rows and counters, read while all others are at work. */
    void snapshot() {
        int[] used = new int[1];
        pool.snapshot()
                .forEach(
                        (buffer, spc, db, rel, fork, block, dirty, uses, pins) -> {
                            used[0]++;
                            boolean possible =
                                    db >= 5
                                            && db <= 7
                                            && rel >= 100
                                            && fork < StressRelation.FORKS.length
                                            && block < StressRelation.CAPACITY
                                            && uses <= BufferState.MAX_USAGE_COUNT
                                            && pins <= StressRun.WORKERS + 3;
                            if (!possible) {
                                throw new AssertionError(
                                        "no such row: buffer="
                                                + buffer
                                                + " rel="
                                                + spc
                                                + "/"
                                                + db
                                                + "/"
                                                + rel
                                                + " fork="
                                                + fork
                                                + " block="
                                                + block
                                                + " uses="
                                                + uses
                                                + " pins="
                                                + pins);
                            }
                        });
        PoolSnapshot.Summary summary = pool.snapshot().summary();
        int all = summary.used() + summary.unused();
        if (used[0] > pool.nbuffers() || all != pool.nbuffers()) {
            throw new AssertionError("too many rows " + used[0] + " " + summary);
        }
        for (PoolCounter counter : PoolCounter.values()) {
            long value = pool.counters().value(counter);
            if (value < counters[counter.ordinal()]) {
                throw new AssertionError(counter + " went down to " + value);
            }
            counters[counter.ordinal()] = value;
        }
    }
}
