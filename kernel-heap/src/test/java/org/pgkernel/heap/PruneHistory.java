package org.pgkernel.heap;

import static org.pgkernel.heap.HeapTupleHeader.HEAP_HOT_UPDATED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_KEYS_UPDATED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_ONLY_TUPLE;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_UPDATED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_BITS;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_INVALID;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMIN_COMMITTED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMIN_INVALID;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.heap.ModelTransactions.State;

/**
 * A page with a past: transactions one after the other insert rows, make HOT versions of them and
 * delete them, commit or abort; the last may still run. Between them the page may be pruned.
 */
final class PruneHistory {
    static final int FIRST_XID = 100;

    final ModelTransactions world = new ModelTransactions();
    final TupleVisibility visibility = new TupleVisibility(world, world, new ComboCommandIds());
    final PagePruner pruner = new PagePruner(visibility, world);
    final UnsafeBuffer page = new UnsafeBuffer(new byte[Page.SIZE]);
    final List<Integer> roots = new ArrayList<>();
    int nextXid = FIRST_XID;
    private int nextValue = 1;
    private final Random random;

    PruneHistory(Random random) {
        this.random = random;
        Page.init(page, 0);
    }

    /** What a reader sees whose snapshot was taken when {@code xid} was the next. */
    Snapshot before(int xid) {
        return new Snapshot() {
            @Override
            public boolean isInProgress(int other) {
                return other >= xid || world.state(other) == State.RUNNING;
            }

            @Override
            public int commandId() {
                return 0;
            }
        };
    }

    /** One transaction of a few changes. */
    void transaction(State end) {
        int xid = nextXid++;
        world.states.put(xid, State.MINE);
        for (int i = random.nextInt(4); i >= 0; i--) {
            int root = roots.isEmpty() ? 0 : roots.get(random.nextInt(roots.size()));
            int current = root == 0 ? 0 : current(root);
            if (current == 0 || random.nextInt(4) == 0) {
                int offnum = add(xid, 0);
                if (offnum != 0) {
                    // A new row may take over the line pointer of one that has vanished.
                    roots.remove((Integer) offnum);
                    roots.add(offnum);
                }
            } else if (random.nextInt(4) == 0) {
                end(current, xid, current, 0);
            } else {
                int offnum = add(xid, HEAP_ONLY_TUPLE);
                if (offnum != 0) {
                    end(current, xid, offnum, HEAP_HOT_UPDATED);
                }
            }
        }
        world.states.put(xid, end);
    }

    /** The row's version that a new transaction may change, or 0. */
    private int current(int root) {
        return find(root, (at) -> visibility.satisfiesSelf(page, at, HintBits.NONE) && !busy(at));
    }

    /** A deletion that did not abort stands, even the transaction's own. */
    private boolean busy(int at) {
        int xmax = HeapTupleHeader.xmax(page, at);
        return (HeapTupleHeader.infomask(page, at) & HEAP_XMAX_INVALID) == 0
                && xmax != 0
                && world.state(xmax) != State.ABORTED;
    }

    private int add(int xid, int flags) {
        UnsafeBuffer tuple = new UnsafeBuffer(new byte[32]);
        HeapTupleHeader.setXmin(tuple, 0, xid);
        HeapTupleHeader.setInfomask(tuple, 0, HEAP_XMAX_INVALID | (flags != 0 ? HEAP_UPDATED : 0));
        HeapTupleHeader.setInfomask2(tuple, 0, 1 | flags);
        HeapTupleHeader.setHoff(tuple, 0, 24);
        tuple.putInt(24, nextValue++);
        int offnum = PageItems.addItem(page, tuple, 0, 28, 0, false, true);
        if (offnum != 0) {
            HeapTupleHeader.setCtid(page, HeapPage.tupleAt(page, offnum), 0, offnum);
        }
        return offnum;
    }

    private void end(int offnum, int xid, int next, int flags) {
        int at = HeapPage.tupleAt(page, offnum);
        HeapTupleHeader.setXmax(page, at, xid);
        HeapTupleHeader.setInfomask(page, at, HeapTupleHeader.infomask(page, at) & ~HEAP_XMAX_BITS);
        int infomask2 = HeapTupleHeader.infomask2(page, at);
        HeapTupleHeader.setInfomask2(
                page,
                at,
                infomask2 & ~(HEAP_HOT_UPDATED | HEAP_KEYS_UPDATED)
                        | (flags != 0 ? flags : HEAP_KEYS_UPDATED));
        HeapTupleHeader.setCtid(page, at, 0, next);
    }

    /** Freezes some inserters that are older than {@code horizon}, by the flag alone. */
    void freezeSome(int horizon) {
        for (int i = 1; i <= Page.maxOffsetNumber(page); i++) {
            if (Page.lpIsNormal(Page.itemId(page, i)) && random.nextInt(3) == 0) {
                int at = HeapPage.tupleAt(page, i);
                int xmin = HeapTupleHeader.xmin(page, at);
                if (xmin < horizon && world.committed(xmin)) {
                    HeapTupleHeader.setInfomask(
                            page,
                            at,
                            HeapTupleHeader.infomask(page, at)
                                    | HEAP_XMIN_COMMITTED
                                    | HEAP_XMIN_INVALID);
                }
            }
        }
    }

    /** The value an index entry leads to, or 0: told anew here, not by the code under test. */
    int value(int root, Snapshot snapshot) {
        int offnum = find(root, at -> visibility.satisfiesMvcc(page, at, snapshot, HintBits.NONE));
        return offnum == 0 ? 0 : page.getInt(HeapPage.tupleAt(page, offnum) + 24);
    }

    private int find(int root, java.util.function.IntPredicate wanted) {
        int offnum = root;
        int prior = 0;
        if (offnum > Page.maxOffsetNumber(page)) {
            return 0;
        }
        if (Page.lpFlags(Page.itemId(page, root)) == Page.LP_REDIRECT) {
            offnum = Page.lpOffset(Page.itemId(page, root));
        }
        while (offnum <= Page.maxOffsetNumber(page) && Page.lpIsNormal(Page.itemId(page, offnum))) {
            int at = HeapPage.tupleAt(page, offnum);
            if (prior != 0 && HeapTupleHeader.xmin(page, at) != prior) {
                return 0;
            }
            if (wanted.test(at)) {
                return offnum;
            }
            if ((HeapTupleHeader.infomask2(page, at) & HEAP_HOT_UPDATED) == 0) {
                return 0;
            }
            prior = HeapTupleHeader.xmax(page, at);
            offnum = HeapTupleHeader.ctidOffsetNumber(page, at);
        }
        return 0;
    }

    /** What each root leads to under each snapshot that may still be open. */
    List<Integer> answers(int horizon) {
        List<Integer> answers = new ArrayList<>();
        for (int root : roots) {
            for (int xid = horizon; xid <= nextXid; xid++) {
                answers.add(value(root, before(xid)));
            }
        }
        return answers;
    }

    State randomEnd() {
        return random.nextInt(4) == 0 ? State.ABORTED : State.COMMITTED;
    }
}
