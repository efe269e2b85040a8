package org.pgkernel.heap;

import java.util.HashMap;
import java.util.Map;

/** Transactions whose state a test sets; counts what is asked of them. */
final class ModelTransactions implements TransactionStatus, MultiXacts {
    enum State {
        MINE,
        RUNNING,
        /** Committed before the snapshot. */
        COMMITTED,
        /** Committed since the snapshot. */
        COMMITTED_LATE,
        ABORTED
    }

    final Map<Integer, State> states = new HashMap<>();
    final Map<Integer, Long> unflushed = new HashMap<>();
    final Map<Integer, int[]> multis = new HashMap<>();
    int nextMulti = 1;
    int asked;

    /** Runs before each question about a commit; a test changes the world here. */
    Runnable beforeDidCommit = () -> {};

    State state(int xid) {
        return xid == 1 || xid == 2 ? State.COMMITTED : states.get(xid);
    }

    boolean committed(int xid) {
        return state(xid) == State.COMMITTED || state(xid) == State.COMMITTED_LATE;
    }

    /** Runs before each question; a test lets transactions end here. */
    Runnable beforeQuestion = () -> {};

    @Override
    public boolean isCurrent(int xid) {
        beforeQuestion.run();
        return state(xid) == State.MINE;
    }

    @Override
    public boolean isInProgress(int xid) {
        beforeQuestion.run();
        asked++;
        return state(xid) == State.MINE || state(xid) == State.RUNNING;
    }

    @Override
    public boolean didCommit(int xid) {
        beforeDidCommit.run();
        return committed(xid);
    }

    @Override
    public long unflushedCommitLsn(int xid) {
        return unflushed.getOrDefault(xid, 0L);
    }

    Snapshot snapshot(int commandId) {
        return new Snapshot() {
            @Override
            public boolean isInProgress(int xid) {
                State state = state(xid);
                return state == State.RUNNING || state == State.COMMITTED_LATE;
            }

            @Override
            public int commandId() {
                return commandId;
            }
        };
    }

    @Override
    public void members(int multi, Members into) {
        into.clear();
        int[] pairs = multis.get(multi);
        for (int i = 0; i < pairs.length; i += 2) {
            into.add(pairs[i], pairs[i + 1]);
        }
    }

    @Override
    public int create(Members members) {
        int[] pairs = new int[2 * members.count()];
        for (int i = 0; i < members.count(); i++) {
            pairs[2 * i] = members.xid(i);
            pairs[2 * i + 1] = members.status(i);
        }
        return multi(pairs);
    }

    int multi(int... pairs) {
        multis.put(nextMulti, pairs);
        return nextMulti++;
    }
}
