package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.Supplier;
import org.agrona.UnsafeApi;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.NativeMemory;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.testkit.CrashSearch;
import org.pgkernel.testkit.FaultyDisk;
import org.pgkernel.testkit.SimulatedDisk;

/**
 * What the storage manager owes to recovery: whatever a crash does, redo of all that was logged
 * since the last checkpoint that {@link SyncRequests#process} let through gives every fork the size
 * and the bytes that it had.
 *
 * <p>The log is a list in this object's memory, written before the files, as WAL is. A model of
 * files, lists of numbers, follows it. After the crash the records from the redo point on are
 * applied to what is found, by the operations that redo uses, and the forks compared. Then comes a
 * checkpoint and a loss of all that it did not sync; the forks are compared, grown by more than a
 * segment, and compared again, so that nothing of an earlier life comes up.
 */
final class CrashRun implements CrashSearch.Run {
    static final String DIRECTORY = "/data";
    static final SimulatedDisk TEMPLATE =
            new SimulatedDisk(0).directories(DIRECTORY + "/base/5", DIRECTORY + "/global");

    private static final int SPC = 1663;
    private static final int DB = 5;
    static final int SEGMENT = 2;
    private static final int PAGE = BlockNumber.PAGE_SIZE;
    private static final int RELATIONS = 3;
    private static final ForkNumber[] FORKS = {ForkNumber.MAIN, ForkNumber.FSM};

    /** Shared by all runs, which do not overlap. */
    private static final long ADDRESS = NativeMemory.reserve(PAGE);

    enum Kind {
        CREATE,
        EXTEND,
        EXTEND_BEYOND,
        WRITE,
        TRUNCATE,
        DROP,
        /** A new relation filled without log and made durable at its end. */
        BULK,
        CLOSE,
        CHECKPOINT,
        /**
         * Does the steps that follow, up to the next checkpoint, while the first file is synced.
         */
        CHECKPOINT_AT_WORK
    }

    /**
     * @param amount a block or a number of blocks
     */
    record Step(Kind kind, int relation, boolean mainFork, int amount) {
        static List<Step> random(long seed, int count) {
            SplittableRandom random = new SplittableRandom(seed);
            List<Step> steps = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                Kind kind = Kind.values()[random.nextInt(Kind.values().length)];
                steps.add(
                        new Step(
                                kind,
                                random.nextInt(RELATIONS),
                                random.nextInt(3) > 0,
                                random.nextInt(8)));
            }
            return steps;
        }
    }

    /** What a run is made of; a mutant replaces some of it. */
    static class Parts {
        Disk disk(Disk disk) {
            return disk;
        }

        SyncRequests requests(Disk disk) {
            return new SyncRequests(disk, DIRECTORY);
        }
    }

    private enum What {
        CREATE,
        PAGE,
        TRUNCATE,
        DROP,
        BULK
    }

    private record Entry(What what, int relation, ForkNumber fork, int block, int fill) {}

    /** A fork in the model: one byte a block. */
    private record Fork(int relation, ForkNumber fork) {}

    private final List<Step> steps;
    private final boolean redo;
    private final SizePolicy policy;
    private final Parts parts;

    private final List<Entry> log = new ArrayList<>();
    private Map<Fork, List<Integer>> model = new HashMap<>();

    /** Where redo begins, and the model there. */
    private int redoPoint;

    private Map<Fork, List<Integer>> modelAtRedoPoint = new HashMap<>();

    /** Relations whose kept segment waits for a checkpoint. */
    private final List<Integer> kept = new ArrayList<>();

    /** A relation being filled without log, 0 for none: after a crash it is removed. */
    private int unfinished;

    private int fill;
    private SyncRequests requests;
    private StorageManager manager;
    private FaultyDisk faulty;

    /**
     * @param redo works as a standby does, with restartpoints
     */
    CrashRun(List<Step> steps, boolean redo, SizePolicy policy, Parts parts) {
        this.steps = steps;
        this.redo = redo;
        this.policy = policy;
        this.parts = parts;
    }

    /**
     * @param parts new ones for each run
     */
    static CrashSearch search(
            String name,
            List<Step> steps,
            boolean redo,
            SizePolicy policy,
            Supplier<? extends Parts> parts) {
        return CrashSearch.of(name, TEMPLATE, () -> new CrashRun(steps, redo, policy, parts.get()));
    }

    @Override
    public void workload(SimulatedDisk disk) {
        faulty = new FaultyDisk(parts.disk(disk));
        open(faulty, redo);
        try {
            for (int i = 0; i < steps.size(); i++) {
                if (steps.get(i).kind == Kind.CHECKPOINT_AT_WORK) {
                    i = checkpointAtWork(i);
                } else {
                    apply(steps.get(i));
                }
            }
        } catch (KernelStoppedException | DiskException e) {
            // The kernel stops, and is started anew.
        }
    }

    /**
     * @return the last step done
     */
    private int checkpointAtWork(int at) {
        int[] next = {at + 1};
        faulty.after(
                FaultyDisk.Call.SYNC,
                (path, offset) -> {
                    faulty.clear(FaultyDisk.Call.SYNC);
                    for (; next[0] < steps.size(); next[0]++) {
                        Step step = steps.get(next[0]);
                        if (step.kind == Kind.CHECKPOINT || step.kind == Kind.CHECKPOINT_AT_WORK) {
                            break;
                        }
                        apply(step);
                    }
                });
        checkpoint();
        faulty.clear(FaultyDisk.Call.SYNC);
        return next[0] - 1;
    }

    private void open(Disk disk, boolean inRecovery) {
        requests = parts.requests(disk);
        manager = new StorageManager(disk, DIRECTORY, SEGMENT, policy, requests, 2);
        manager.inRecovery(inRecovery);
    }

    private void apply(Step step) {
        int number = 100 + step.relation;
        SmgrRelation relation = manager.open(SPC, DB, number);
        ForkNumber fork = step.mainFork ? ForkNumber.MAIN : ForkNumber.FSM;
        Fork key = new Fork(number, fork);
        boolean exists = model.containsKey(key);
        switch (step.kind) {
            case CREATE -> {
                if (!exists && (!kept.contains(number) || fork != ForkNumber.MAIN)) {
                    log(new Entry(What.CREATE, number, fork, 0, 0));
                    relation.create(fork, redo);
                }
            }
            case EXTEND, EXTEND_BEYOND, WRITE, TRUNCATE -> {
                if (exists) {
                    change(step, relation, key);
                }
            }
            case DROP -> {
                if (model.containsKey(new Fork(number, ForkNumber.MAIN))) {
                    log(new Entry(What.DROP, number, fork, 0, 0));
                    if (!redo) {
                        kept.add(number);
                    }
                    manager.unlinkAll(new SmgrRelation[] {relation}, 1, redo);
                }
            }
            case BULK -> bulk(relation, number, step.amount);
            case CLOSE -> manager.close(relation);
            case CHECKPOINT -> checkpoint();
            case CHECKPOINT_AT_WORK -> throw new AssertionError(step);
        }
    }

    private void change(Step step, SmgrRelation relation, Fork key) {
        List<Integer> blocks = model.get(key);
        int size = blocks.size();
        assertEquals(size, relation.nblocks(key.fork), "before any crash");
        fill = fill % 250 + 1;
        switch (step.kind) {
            case EXTEND, EXTEND_BEYOND -> {
                int block = step.kind == Kind.EXTEND ? size : size + step.amount % 3;
                log(new Entry(What.PAGE, key.relation, key.fork, block, fill));
                page(fill);
                relation.extend(key.fork, block, ADDRESS, false);
            }
            case WRITE -> {
                if (size > 0) {
                    int block = step.amount % size;
                    log(new Entry(What.PAGE, key.relation, key.fork, block, fill));
                    page(fill);
                    relation.write(key.fork, block, ADDRESS, false);
                }
            }
            default -> {
                int left = step.amount % (size + 1);
                log(new Entry(What.TRUNCATE, key.relation, key.fork, left, 0));
                relation.truncate(key.fork, left);
            }
        }
    }

    /** As a table that is created and filled in one transaction under wal_level=minimal. */
    private void bulk(SmgrRelation relation, int number, int amount) {
        Fork key = new Fork(number, ForkNumber.MAIN);
        if (redo || model.containsKey(key) || kept.contains(number)) {
            return;
        }
        unfinished = number;
        log(new Entry(What.CREATE, number, ForkNumber.MAIN, 0, 0));
        relation.create(ForkNumber.MAIN, false);
        fill = fill % 250 + 1;
        page(fill);
        for (int block = 0; block < amount; block++) {
            relation.extend(ForkNumber.MAIN, block, ADDRESS, true);
        }
        relation.immediateSync(ForkNumber.MAIN);
        log(new Entry(What.BULK, number, ForkNumber.MAIN, amount, fill));
        unfinished = 0;
    }

    private void checkpoint() {
        int point = log.size();
        Map<Fork, List<Integer>> modelThen = copy(model);
        List<Integer> keptThen = List.copyOf(kept);
        requests.preCheckpoint();
        requests.process();
        // Here the checkpoint's record and the control file are durable.
        redoPoint = point;
        modelAtRedoPoint = modelThen;
        requests.postCheckpoint();
        kept.removeAll(keptThen);
    }

    private void log(Entry entry) {
        log.add(entry);
        applyTo(model, entry);
    }

    private static void applyTo(Map<Fork, List<Integer>> model, Entry entry) {
        Fork key = new Fork(entry.relation, entry.fork);
        switch (entry.what) {
            case CREATE -> model.putIfAbsent(key, new ArrayList<>());
            case PAGE -> {
                List<Integer> blocks = model.get(key);
                while (blocks.size() <= entry.block) {
                    blocks.add(0);
                }
                blocks.set(entry.block, entry.fill);
            }
            case TRUNCATE -> {
                List<Integer> blocks = model.get(key);
                blocks.subList(entry.block, blocks.size()).clear();
            }
            case DROP -> model.keySet().removeIf(fork -> fork.relation == entry.relation);
            case BULK -> {
                List<Integer> blocks = model.get(key);
                while (blocks.size() < entry.block) {
                    blocks.add(entry.fill);
                }
            }
        }
    }

    @Override
    public void verify(SimulatedDisk found) {
        open(parts.disk(found), true);
        for (Entry entry : log.subList(redoPoint, log.size())) {
            redo(entry);
        }
        if (unfinished != 0) {
            Entry drop = new Entry(What.DROP, unfinished, ForkNumber.MAIN, 0, 0);
            redo(drop);
            applyTo(model, drop);
        }
        check("after redo");
        requests.preCheckpoint();
        requests.process();
        requests.postCheckpoint();
        manager.closeAll();
        grow(found.found(SimulatedDisk.LOSE_ALL));
    }

    /** Recovery has ended with a checkpoint, and the machine loses power once more. */
    private void grow(SimulatedDisk found) {
        open(parts.disk(found), false);
        check("after the checkpoint");
        Map<Fork, List<Integer>> before = model;
        model = copy(before);
        model.forEach(
                (fork, blocks) -> {
                    SmgrRelation relation = manager.open(SPC, DB, fork.relation);
                    for (int i = 0; i <= SEGMENT; i++) {
                        page(255);
                        relation.extend(fork.fork, blocks.size(), ADDRESS, false);
                        blocks.add(255);
                        assertEquals(blocks.size(), relation.nblocks(fork.fork), "growing");
                    }
                });
        manager.closeAll();
        check("after growing by more than a segment");
        model = before;
    }

    /** As redo does it: makes what is missing, and pages up to the one that it wants. */
    private void redo(Entry entry) {
        SmgrRelation relation = manager.open(SPC, DB, entry.relation);
        switch (entry.what) {
            case CREATE -> relation.create(entry.fork, true);
            case PAGE -> {
                relation.create(entry.fork, true);
                int size = relation.nblocks(entry.fork);
                page(entry.fill);
                if (entry.block < size) {
                    relation.write(entry.fork, entry.block, ADDRESS, false);
                } else {
                    relation.zeroExtend(entry.fork, size, entry.block - size, false);
                    relation.extend(entry.fork, entry.block, ADDRESS, false);
                }
            }
            case TRUNCATE -> {
                relation.create(entry.fork, true);
                relation.truncate(entry.fork, entry.block);
            }
            case DROP -> {
                for (ForkNumber fork : FORKS) {
                    relation.exists(fork);
                }
                manager.unlinkAll(new SmgrRelation[] {relation}, 1, true);
            }
            case BULK -> {
                // Its pages were durable before it was logged.
            }
        }
    }

    private void check(String when) {
        for (int number = 100; number < 100 + RELATIONS; number++) {
            for (ForkNumber fork : FORKS) {
                check(number, fork, when);
            }
        }
    }

    private void check(int number, ForkNumber fork, String when) {
        String place = when + ": rel=" + number + " fork=" + fork;
        SmgrRelation relation = manager.open(SPC, DB, number);
        List<Integer> blocks = model.get(new Fork(number, fork));
        if (blocks == null) {
            // The kept segment of a dropped relation may come back, empty, when its removal is
            // lost.
            boolean comesBack = relation.exists(fork) && fork == ForkNumber.MAIN;
            if (comesBack) {
                assertEquals(0, relation.nblocks(fork), place);
            } else {
                assertFalse(relation.exists(fork), place);
            }
            return;
        }
        assertTrue(relation.exists(fork), place + " is missing");
        assertEquals(blocks.size(), relation.nblocks(fork), place + " size");
        for (int block = 0; block < blocks.size(); block++) {
            relation.read(fork, block, ADDRESS);
            long expected = blocks.get(block) * 0x0101010101010101L;
            for (int i = 0; i < PAGE; i += Long.BYTES) {
                long word = UnsafeApi.getLong(ADDRESS + i);
                if (word != expected) {
                    assertEquals(
                            Long.toHexString(expected),
                            Long.toHexString(word),
                            place + " block=" + block + " byte=" + i);
                }
            }
        }
    }

    private static void page(int fill) {
        UnsafeApi.setMemory(ADDRESS, PAGE, (byte) fill);
    }

    private static Map<Fork, List<Integer>> copy(Map<Fork, List<Integer>> model) {
        Map<Fork, List<Integer>> copy = new HashMap<>();
        model.forEach((fork, blocks) -> copy.put(fork, new ArrayList<>(blocks)));
        return copy;
    }
}
