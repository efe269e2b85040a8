package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_COMBOCID;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_COMMITTED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_EXCL_LOCK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_INVALID;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_IS_MULTI;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_KEYSHR_LOCK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_LOCK_ONLY;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMIN_COMMITTED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMIN_INVALID;

import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.heap.ModelTransactions.State;
import org.pgkernel.heap.TupleVisibility.VacuumStatus;

/**
 * HEAP-10: who sees a tuple follows from what became of its inserter and its deleter, and from
 * nothing else. The reference is told in those words; headers of every kind are laid out for the
 * same story, with and without the hints that it allows.
 */
class TupleVisibilityProperties {
    private static final int AT = 40;
    private static final int COMMAND = 5;

    private final ModelTransactions world = new ModelTransactions();
    private final ComboCommandIds combos = new ComboCommandIds();
    private final TupleVisibility visibility = new TupleVisibility(world, world, combos);
    private final UnsafeBuffer tuple = new UnsafeBuffer(new byte[AT + 24]);
    private long pageLsn;

    /** Checks each hint against the truth and writes it. */
    private final HintBits hints =
            new HintBits() {
                @Override
                public boolean maySetAfter(long commitLsn) {
                    return pageLsn >= commitLsn;
                }

                @Override
                public void set(int at, int bits) {
                    assertEquals(AT, at);
                    switch (bits) {
                        case HEAP_XMIN_COMMITTED -> mayTellCommitted(inserter);
                        case HEAP_XMIN_INVALID ->
                                assertEquals(State.ABORTED, world.state(inserter));
                        case HEAP_XMAX_COMMITTED -> mayTellCommitted(deleter);
                        case HEAP_XMAX_INVALID ->
                                assertTrue(
                                        deleter == 0 ? !lockersRun : !lives(deleter),
                                        "deleter " + deleter);
                        default -> throw new AssertionError(bits);
                    }
                    HeapTupleHeader.setInfomask(
                            tuple, AT, HeapTupleHeader.infomask(tuple, AT) | bits);
                }

                private void mayTellCommitted(int xid) {
                    assertTrue(world.committed(xid));
                    assertTrue(world.unflushedCommitLsn(xid) <= pageLsn);
                }
            };

    private int inserter;
    private int deleter;
    private int cmin;
    private int cmax;
    private boolean frozen;
    private boolean lockersRun;

    private boolean lives(int xid) {
        return world.committed(xid) || world.isInProgress(xid);
    }

    private static <T> T pick(Random random, T[] values) {
        return values[random.nextInt(values.length)];
    }

    /** A story, and a header that tells it. */
    private void tell(Random random) {
        world.states.clear();
        world.unflushed.clear();
        combos.clear();
        pageLsn = random.nextInt(100);
        inserter = 100;
        State state = pick(random, State.values());
        world.states.put(inserter, state);
        frozen = state == State.COMMITTED && random.nextInt(3) == 0;
        cmin = random.nextInt(10);
        cmax = random.nextInt(10);
        deleter = 0;
        lockersRun = false;
        for (int xid = 100; xid <= 102; xid++) {
            if (random.nextInt(3) == 0) {
                world.unflushed.put(xid, (long) random.nextInt(100));
            }
        }
        int infomask = inserterHints(random, state) | deleterOf(random, state);
        HeapTupleHeader.setXmin(tuple, AT, inserter);
        boolean both = state == State.MINE && deleter != 0 && world.isCurrent(deleter);
        infomask |= both ? HEAP_COMBOCID : 0;
        int command = both ? combos.combine(cmin, cmax) : state == State.MINE ? cmin : cmax;
        tuple.putInt(AT + HeapTupleHeader.T_CID, command);
        HeapTupleHeader.setInfomask(tuple, AT, infomask);
    }

    private int inserterHints(Random random, State state) {
        if (frozen) {
            return HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID;
        }
        boolean hinted = random.nextBoolean();
        return switch (state) {
            case MINE, RUNNING -> 0;
            case COMMITTED, COMMITTED_LATE -> hinted ? HEAP_XMIN_COMMITTED : 0;
            case ABORTED -> hinted ? HEAP_XMIN_INVALID : 0;
        };
    }

    private int deleterOf(Random random, State inserterState) {
        // Nobody else can touch a row whose inserter has not committed.
        State[] possible =
                switch (inserterState) {
                    case MINE -> new State[] {State.MINE, State.ABORTED};
                    case RUNNING, ABORTED -> new State[] {State.ABORTED};
                    case COMMITTED -> State.values();
                    case COMMITTED_LATE ->
                            new State[] {State.RUNNING, State.COMMITTED_LATE, State.ABORTED};
                };
        State state = pick(random, possible);
        world.states.put(101, state);
        world.states.put(102, pick(random, State.values()));
        boolean hinted = random.nextBoolean();
        switch (random.nextInt(6)) {
            case 0 -> {
                HeapTupleHeader.setXmax(tuple, AT, 0);
                return HEAP_XMAX_INVALID;
            }
            case 1 -> {
                HeapTupleHeader.setXmax(tuple, AT, 101);
                lockersRun = world.isInProgress(101);
                return HEAP_XMAX_LOCK_ONLY | HEAP_XMAX_EXCL_LOCK;
            }
            case 2 -> {
                HeapTupleHeader.setXmax(
                        tuple,
                        AT,
                        world.multi(101, MultiXacts.FOR_KEY_SHARE, 102, MultiXacts.FOR_SHARE));
                lockersRun = world.isInProgress(101) || world.isInProgress(102);
                return HEAP_XMAX_LOCK_ONLY | HEAP_XMAX_IS_MULTI | HEAP_XMAX_KEYSHR_LOCK;
            }
            case 3 -> {
                deleter = 101;
                HeapTupleHeader.setXmax(
                        tuple,
                        AT,
                        world.multi(102, MultiXacts.FOR_KEY_SHARE, 101, MultiXacts.NO_KEY_UPDATE));
                return HEAP_XMAX_IS_MULTI | HEAP_XMAX_KEYSHR_LOCK;
            }
            default -> {
                deleter = 101;
                HeapTupleHeader.setXmax(tuple, AT, 101);
                if (!hinted || world.isInProgress(101)) {
                    return 0;
                }
                return state == State.ABORTED ? HEAP_XMAX_INVALID : HEAP_XMAX_COMMITTED;
            }
        }
    }

    /** Seen by the snapshot: committed before it, or mine and of an earlier command. */
    private boolean seen(int xid, int command) {
        State state = world.state(xid);
        return state == State.COMMITTED || state == State.MINE && command < COMMAND;
    }

    private boolean done(int xid) {
        return world.committed(xid) || world.state(xid) == State.MINE;
    }

    @Property(tries = 5000)
    void anMvccSnapshotSeesWhatItsPastMade(@ForAll long seed) {
        tell(new Random(seed));
        boolean expected = seen(inserter, cmin) && !(deleter != 0 && seen(deleter, cmax));
        for (int i = 0; i < 2; i++) {
            assertEquals(
                    expected,
                    visibility.satisfiesMvcc(tuple, AT, world.snapshot(COMMAND), hints),
                    i == 0 ? "asked" : "asked again, with hints");
        }
    }

    @Property(tries = 5000)
    void selfSeesWhatIsDoneNowAndDirtyWhatMayBe(@ForAll long seed) {
        tell(new Random(seed));
        boolean gone = deleter != 0 && done(deleter);
        boolean running = world.state(inserter) == State.RUNNING;
        for (int i = 0; i < 2; i++) {
            assertEquals(done(inserter) && !gone, visibility.satisfiesSelf(tuple, AT, hints));
            assertEquals(0, visibility.dirtyXmin() | visibility.dirtyXmax());
            assertEquals(
                    running || done(inserter) && !gone,
                    visibility.satisfiesDirty(tuple, AT, hints));
            assertEquals(running ? inserter : 0, visibility.dirtyXmin());
            boolean deleting = deleter != 0 && world.state(deleter) == State.RUNNING;
            assertEquals(!running && deleting ? deleter : 0, visibility.dirtyXmax());
        }
        assertTrue(TupleVisibility.satisfiesAny());
    }

    @Property(tries = 5000)
    void vacuumRemovesOnlyWhatNobodyCanSee(@ForAll long seed, @ForAll boolean removable) {
        tell(new Random(seed));
        VacuumStatus expected = expectedStatus(removable);
        for (int i = 0; i < 2; i++) {
            VacuumStatus status =
                    visibility.vacuumStatus(
                            tuple,
                            AT,
                            xid -> {
                                assertEquals(deleter, xid);
                                return removable;
                            },
                            hints);
            assertEquals(expected, status);
            if (status == VacuumStatus.RECENTLY_DEAD) {
                assertEquals(deleter, visibility.deadAfter());
            }
            assertEquals(
                    expected != VacuumStatus.DEAD,
                    visibility.satisfiesNonVacuumable(tuple, AT, xid -> removable, hints));
        }
    }

    private VacuumStatus expectedStatus(boolean removable) {
        State ended = deleter == 0 ? State.ABORTED : world.state(deleter);
        return switch (world.state(inserter)) {
            case ABORTED -> VacuumStatus.DEAD;
            case RUNNING -> VacuumStatus.INSERT_IN_PROGRESS;
            case MINE ->
                    ended == State.MINE
                            ? VacuumStatus.DELETE_IN_PROGRESS
                            : VacuumStatus.INSERT_IN_PROGRESS;
            case COMMITTED, COMMITTED_LATE ->
                    switch (ended) {
                        case ABORTED -> VacuumStatus.LIVE;
                        case MINE, RUNNING -> VacuumStatus.DELETE_IN_PROGRESS;
                        case COMMITTED, COMMITTED_LATE ->
                                removable ? VacuumStatus.DEAD : VacuumStatus.RECENTLY_DEAD;
                    };
        };
    }

    /** The commit happens between the two questions: the tuple is not taken for aborted. */
    @Example
    void aCommitBetweenTheQuestionsIsNotTakenForAnAbort() {
        world.states.put(100, State.RUNNING);
        HeapTupleHeader.setXmin(tuple, AT, 100);
        HeapTupleHeader.setInfomask(tuple, AT, HEAP_XMAX_INVALID);
        world.beforeDidCommit = () -> world.states.put(100, State.COMMITTED);
        inserter = 100;
        assertFalse(visibility.satisfiesSelf(tuple, AT, hints));
        assertEquals(HEAP_XMAX_INVALID, HeapTupleHeader.infomask(tuple, AT));
    }

    @Example
    void anUnflushedCommitIsSeenButNotHinted() {
        world.states.put(100, State.COMMITTED);
        world.unflushed.put(100, 50L);
        inserter = 100;
        HeapTupleHeader.setXmin(tuple, AT, 100);
        HeapTupleHeader.setInfomask(tuple, AT, HEAP_XMAX_INVALID);
        pageLsn = 49;
        assertTrue(visibility.satisfiesMvcc(tuple, AT, world.snapshot(0), hints));
        assertEquals(HEAP_XMAX_INVALID, HeapTupleHeader.infomask(tuple, AT));
        pageLsn = 50;
        assertTrue(visibility.satisfiesMvcc(tuple, AT, world.snapshot(0), hints));
        assertEquals(HEAP_XMAX_INVALID | HEAP_XMIN_COMMITTED, HeapTupleHeader.infomask(tuple, AT));
    }

    @Example
    void aFrozenInserterIsNeverLookedUp() {
        HeapTupleHeader.setXmin(tuple, AT, 7);
        HeapTupleHeader.setInfomask(
                tuple, AT, HEAP_XMAX_INVALID | HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID);
        Snapshot none =
                new Snapshot() {
                    @Override
                    public boolean isInProgress(int xid) {
                        throw new AssertionError("asked for " + xid);
                    }

                    @Override
                    public int commandId() {
                        return 0;
                    }
                };
        assertTrue(visibility.satisfiesMvcc(tuple, AT, none, hints));
        assertEquals(VacuumStatus.LIVE, visibility.vacuumStatus(tuple, AT, xid -> true, hints));
        assertEquals(0, world.asked);
    }

    @Example
    void tuplesMovedByAnAncientVacuumFullAreRefused() {
        HeapTupleHeader.setInfomask(tuple, AT, 0x4000);
        assertThrows(DamagedDataException.class, () -> visibility.satisfiesSelf(tuple, AT, hints));
    }
}
