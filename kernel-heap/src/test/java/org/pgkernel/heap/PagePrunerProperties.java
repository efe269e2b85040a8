package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_COMMITTED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_EXCL_LOCK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_INVALID;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_IS_MULTI;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_KEYSHR_LOCK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMIN_COMMITTED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMIN_INVALID;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Label;
import net.jqwik.api.Property;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.heap.ModelTransactions.State;
import org.pgkernel.heap.TupleVisibility.VacuumHorizon;
import org.pgkernel.heap.TupleVisibility.VacuumStatus;

/** HEAP-11, HEAP-12, HEAP-13: pruning and freezing change what is stored, never what is seen. */
class PagePrunerProperties {
    private static void past(PruneHistory history, Random random) {
        for (int i = 3 + random.nextInt(12); i > 0; i--) {
            history.transaction(history.randomEnd());
            if (random.nextInt(5) == 0) {
                int horizon = history.nextXid - random.nextInt(3);
                prune(history, xid -> xid < horizon);
            }
        }
        if (random.nextBoolean()) {
            history.transaction(State.RUNNING);
        }
    }

    private static void prune(PruneHistory history, VacuumHorizon horizon) {
        boolean planned = history.pruner.plan(history.page, horizon, true);
        history.pruner.applyHints(history.page);
        if (planned) {
            history.pruner.apply(history.page);
        }
    }

    @Property(tries = 2000)
    void everyOpenSnapshotSeesTheSameRowsAfterAPrune(@ForAll long seed) {
        Random random = new Random(seed);
        PruneHistory history = new PruneHistory(random);
        past(history, random);
        int horizon = PruneHistory.FIRST_XID + random.nextInt(history.nextXid - 99);
        history.freezeSome(horizon);
        List<Integer> before = history.answers(horizon);
        byte[] page = history.page.byteArray().clone();
        boolean planned = history.pruner.plan(history.page, xid -> xid < horizon, true);
        assertArrayEquals(page, history.page.byteArray(), "planning writes nothing");
        history.pruner.applyHints(history.page);
        assertEquals(before, history.answers(horizon), "hints");
        if (planned) {
            history.pruner.apply(history.page);
        }
        assertEquals(before, history.answers(horizon));
        assertRedirectsLead(history.page);
        assertFalse(
                history.pruner.plan(history.page, xid -> xid < horizon, true),
                "a second prune finds nothing");
        for (int i = 1; i <= history.pruner.lines(); i++) {
            assertNotEquals(VacuumStatus.DEAD, history.pruner.status(i), "lp " + i + " is left");
        }
    }

    private static void assertRedirectsLead(UnsafeBuffer page) {
        for (int i = 1; i <= Page.maxOffsetNumber(page); i++) {
            int itemId = Page.itemId(page, i);
            if (Page.lpFlags(itemId) == Page.LP_REDIRECT) {
                int at = HeapPage.tupleAt(page, Page.lpOffset(itemId));
                assertNotEquals(
                        0, HeapTupleHeader.infomask2(page, at) & HeapTupleHeader.HEAP_ONLY_TUPLE);
            }
        }
    }

    @Property(tries = 2000)
    @Label("C22: a horizon that moves and transactions that end during a prune change no answer")
    void aWorldThatMovesDuringAPruneChangesNoAnswer(@ForAll long seed) {
        Random random = new Random(seed);
        PruneHistory history = new PruneHistory(random);
        past(history, random);
        State end = random.nextBoolean() ? State.ABORTED : State.COMMITTED;
        Runnable ends =
                () ->
                        history.world.states.replaceAll(
                                (id, state) -> state == State.RUNNING ? end : state);
        int[] left = {random.nextInt(20)};
        history.world.beforeQuestion =
                () -> {
                    if (left[0]-- == 0) {
                        ends.run();
                    }
                };
        VacuumHorizon moving = xid -> xid < history.nextXid - (left[0] >= 0 ? 4 : 0);
        boolean planned = history.pruner.plan(history.page, moving, true);
        history.world.beforeQuestion = () -> {};
        ends.run();
        List<Integer> before = history.answers(history.nextXid);
        history.pruner.applyHints(history.page);
        if (planned) {
            history.pruner.apply(history.page);
        }
        assertEquals(before, history.answers(history.nextXid));
        assertRedirectsLead(history.page);
    }

    @Property(tries = 1000)
    void everySnapshotSeesTheSameRowsAfterAFreeze(@ForAll long seed) {
        Random random = new Random(seed);
        PruneHistory history = new PruneHistory(random);
        past(history, random);
        int horizon = PruneHistory.FIRST_XID + random.nextInt(history.nextXid - 99);
        int running = history.world.states.values().contains(State.RUNNING) ? 1 : 0;
        int safe = Math.min(horizon, history.nextXid - running);
        prune(history, xid -> xid < safe);
        int cutoff = PruneHistory.FIRST_XID + random.nextInt(safe - 99);
        List<Integer> before = history.answers(safe);
        PageFreezer freezer = new PageFreezer(history.world, history.world);
        boolean planned =
                freezer.plan(
                        history.page,
                        history.pruner,
                        new PageFreezer.Limits(3, 1, cutoff, 1),
                        safe,
                        1);
        assertFalse(freezer.mustPruneAgain());
        if (planned) {
            freezer.apply(history.page);
        }
        assertEquals(before, history.answers(safe));
        int oldest = safe;
        for (int i = 1; i <= Page.maxOffsetNumber(history.page); i++) {
            if (Page.lpIsNormal(Page.itemId(history.page, i))) {
                oldest = Math.min(oldest, oldestLeft(history.page, i));
            }
        }
        assertTrue(oldest >= cutoff, "an id before the cutoff is left");
        assertEquals(oldest, freezer.oldestXid());
        for (int xid = PruneHistory.FIRST_XID; xid < cutoff; xid++) {
            history.world.states.remove(xid);
        }
        assertEquals(before, history.answers(safe), "the old ids need not be known any more");
    }

    private static int oldestLeft(UnsafeBuffer page, int offnum) {
        int at = HeapPage.tupleAt(page, offnum);
        int infomask = HeapTupleHeader.infomask(page, at);
        int oldest = Integer.MAX_VALUE;
        if (!TupleVisibility.isXminFrozen(infomask)) {
            oldest = HeapTupleHeader.xmin(page, at);
        }
        int xmax = HeapTupleHeader.xmax(page, at);
        if (xmax == 0) {
            int links = HeapTupleHeader.HEAP_HOT_UPDATED | HeapTupleHeader.HEAP_KEYS_UPDATED;
            assertEquals(0, HeapTupleHeader.infomask2(page, at) & links, "lp " + offnum);
            return oldest;
        }
        return Math.min(oldest, xmax);
    }

    @Example
    void theRecordsRedoLeavesTheSameBytesAsThePlan() throws IOException {
        Path directory = Files.createTempDirectory("pgkernel-prune");
        Heap2Redo redo2 = new Heap2Redo(0);
        int prunes = 0;
        int freezes = 0;
        try (RedoFixture redo = new RedoFixture(directory, false)) {
            redo.begin(
                    HeapRecords.HEAP_RMID,
                    HeapRecords.INSERT | HeapRecords.INIT_PAGE,
                    9,
                    RedoFixture.part((short) 1, (byte) 0));
            redo.block(0, ForkNumber.MAIN, 0, true)
                    .data(RedoFixture.part((short) 1, (short) 0x800, (byte) 24, new byte[5]))
                    .apply(new HeapRedo(0));
            for (long seed = 0; seed < 300; seed++) {
                Random random = new Random(seed);
                PruneHistory history = new PruneHistory(random);
                past(history, random);
                UnsafeBuffer page = history.page;
                int horizon = history.nextXid - 1 - random.nextInt(3);
                boolean planned = history.pruner.plan(page, xid -> xid < horizon, true);
                history.pruner.applyHints(page);
                PagePruner pruner = history.pruner;
                if (planned) {
                    put(redo, page);
                    pruner.apply(page);
                    log(
                            redo,
                            HeapRecords.PRUNE,
                            pruner.recordData(),
                            HeapRecords.PRUNE_SIZE,
                            pruner.blockData(),
                            pruner.blockDataLength(),
                            redo2);
                    compare(redo, page, "prune, seed " + seed);
                    prunes++;
                }
                PageFreezer freezer = new PageFreezer(history.world, history.world);
                var limits = new PageFreezer.Limits(3, 1, horizon, 1);
                if (freezer.plan(page, pruner, limits, horizon, 1)) {
                    put(redo, page);
                    freezer.apply(page);
                    log(
                            redo,
                            HeapRecords.FREEZE_PAGE,
                            freezer.recordData(),
                            HeapRecords.FREEZE_SIZE,
                            freezer.blockData(),
                            freezer.blockDataLength(),
                            redo2);
                    compare(redo, page, "freeze, seed " + seed);
                    freezes++;
                }
            }
        }
        assertTrue(prunes > 100 && freezes > 100, prunes + " prunes, " + freezes + " freezes");
        try (var files = Files.walk(directory)) {
            files.sorted(java.util.Comparator.reverseOrder()).forEach(f -> f.toFile().delete());
        }
    }

    private static void put(RedoFixture redo, UnsafeBuffer page) {
        redo.change(ForkNumber.MAIN, 0, to -> to.putBytes(0, page, 0, Page.SIZE));
    }

    private static void log(
            RedoFixture redo,
            int info,
            DirectBuffer main,
            int mainLength,
            DirectBuffer block,
            int blockLength,
            Heap2Redo manager) {
        redo.begin(HeapRecords.HEAP2_RMID, info, 0, copy(main, mainLength))
                .block(0, ForkNumber.MAIN, 0, false)
                .data(copy(block, blockLength))
                .apply(manager);
    }

    private static UnsafeBuffer copy(DirectBuffer from, int length) {
        byte[] bytes = new byte[length];
        from.getBytes(0, bytes);
        return new UnsafeBuffer(bytes);
    }

    private static void compare(RedoFixture redo, UnsafeBuffer page, String place) {
        Page.setLsn(page, redo.record.endLsn());
        assertArrayEquals(page.byteArray(), redo.page(ForkNumber.MAIN, 0).byteArray(), place);
        Page.setLsn(page, 0);
    }

    @Example
    @Label("R01: a chain whose second version is frozen stays whole")
    void aHalfFrozenChainStaysWhole() {
        PruneHistory history = new PruneHistory(new Random(4));
        UnsafeBuffer page = history.page;
        twoVersions(history, State.COMMITTED);
        int second = HeapPage.tupleAt(page, 2);
        HeapTupleHeader.setInfomask(
                page,
                second,
                HeapTupleHeader.infomask(page, second) | HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID);
        prune(history, xid -> true);
        assertEquals(Page.packItemId(2, Page.LP_REDIRECT, 0), Page.itemId(page, 1));
        assertTrue(Page.lpIsNormal(Page.itemId(page, 2)));
    }

    @Example
    void aForeignTupleAtTheEndOfAChainIsNoVersionOfIt() {
        PruneHistory history = new PruneHistory(new Random(4));
        twoVersions(history, State.COMMITTED);
        history.world.states.put(90, State.COMMITTED);
        HeapTupleHeader.setXmin(history.page, HeapPage.tupleAt(history.page, 2), 90);
        prune(history, xid -> true);
        assertEquals(Page.packItemId(0, Page.LP_DEAD, 0), Page.itemId(history.page, 1));
        assertTrue(Page.lpIsNormal(Page.itemId(history.page, 2)));
    }

    /** A row inserted by 100 and HOT-updated by 101. */
    private static void twoVersions(PruneHistory history, State second) {
        UnsafeBuffer page = history.page;
        for (int i = 0; i < 2; i++) {
            UnsafeBuffer tuple = new UnsafeBuffer(new byte[32]);
            HeapTupleHeader.setXmin(tuple, 0, 100 + i);
            HeapTupleHeader.setXmax(tuple, 0, i == 0 ? 101 : 0);
            HeapTupleHeader.setInfomask(tuple, 0, i == 0 ? 0 : HEAP_XMAX_INVALID);
            HeapTupleHeader.setInfomask2(
                    tuple,
                    0,
                    1
                            | (i == 0
                                    ? HeapTupleHeader.HEAP_HOT_UPDATED
                                    : HeapTupleHeader.HEAP_ONLY_TUPLE));
            HeapTupleHeader.setCtid(tuple, 0, 0, 2);
            HeapTupleHeader.setHoff(tuple, 0, 24);
            org.pgkernel.base.PageItems.addItem(page, tuple, 0, 28, 0, false, true);
        }
        history.world.states.put(100, State.COMMITTED);
        history.world.states.put(101, second);
        history.nextXid = 102;
    }

    @Example
    @Label("R02: a row that turns dead between prune and freeze is not frozen back to life")
    void aRowThatTurnsDeadBetweenPruneAndFreezeIsNotFrozen() {
        PruneHistory history = new PruneHistory(new Random(4));
        twoVersions(history, State.RUNNING);
        prune(history, xid -> true);
        byte[] pruned = history.page.byteArray().clone();
        history.world.states.put(101, State.COMMITTED);
        PageFreezer freezer = new PageFreezer(history.world, history.world);
        freezer.plan(history.page, history.pruner, new PageFreezer.Limits(3, 1, 102, 1), 102, 1);
        assertTrue(freezer.mustPruneAgain());
        assertFalse(freezer.allFrozen());
        freezer.apply(history.page);
        int at = HeapPage.tupleAt(history.page, 1);
        assertArrayEquals(
                Arrays.copyOfRange(pruned, at, at + 28),
                Arrays.copyOfRange(history.page.byteArray(), at, at + 28));
        prune(history, xid -> true);
        assertEquals(Page.LP_REDIRECT, Page.lpFlags(Page.itemId(history.page, 1)));
    }

    @Example
    void aMultixactIsReplacedByWhatStillCounts() {
        PruneHistory history = new PruneHistory(new Random(4));
        twoVersions(history, State.COMMITTED);
        UnsafeBuffer page = history.page;
        ModelTransactions world = history.world;
        world.states.put(90, State.COMMITTED);
        world.states.put(102, State.RUNNING);
        int at = HeapPage.tupleAt(page, 1);
        // The updater is newer than the cutoff, an old locker has gone.
        multi(page, at, world.multi(90, MultiXacts.FOR_KEY_SHARE, 101, MultiXacts.NO_KEY_UPDATE));
        PageFreezer freezer = new PageFreezer(world, world);
        prune(history, xid -> false);
        var limits = new PageFreezer.Limits(3, 1, 101, 1);
        assertTrue(freezer.plan(page, history.pruner, limits, 101, 9));
        freezer.apply(page);
        assertEquals(101, HeapTupleHeader.xmax(page, at));
        assertEquals(
                HEAP_XMAX_COMMITTED | HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID,
                HeapTupleHeader.infomask(page, at));
        // A locker that runs beside it: a new multixact of both.
        multi(
                page,
                at,
                world.multi(
                        90,
                        MultiXacts.FOR_SHARE,
                        102,
                        MultiXacts.FOR_KEY_SHARE,
                        101,
                        MultiXacts.NO_KEY_UPDATE));
        assertTrue(freezer.plan(page, history.pruner, limits, 101, 9));
        freezer.apply(page);
        assertArrayEquals(
                new int[] {102, MultiXacts.FOR_KEY_SHARE, 101, MultiXacts.NO_KEY_UPDATE},
                world.multis.get(HeapTupleHeader.xmax(page, at)));
        assertEquals(
                HEAP_XMAX_IS_MULTI | HEAP_XMAX_EXCL_LOCK | HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID,
                HeapTupleHeader.infomask(page, at));
        assertFalse(freezer.allFrozen());
    }

    private static void multi(UnsafeBuffer page, int at, int multi) {
        HeapTupleHeader.setXmax(page, at, multi);
        int infomask = HeapTupleHeader.infomask(page, at) & ~HeapTupleHeader.HEAP_XMAX_BITS;
        HeapTupleHeader.setInfomask(
                page, at, infomask | HEAP_XMAX_IS_MULTI | HEAP_XMAX_KEYSHR_LOCK);
    }
}
