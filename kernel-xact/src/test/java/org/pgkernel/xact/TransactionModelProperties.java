package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.fail;

import java.util.function.LongConsumer;
import net.jqwik.api.ForAll;
import net.jqwik.api.Label;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.agrona.DirectBuffer;

/** XACT-8 to XACT-11 against {@link TransactionModel}, and the mutants that it must find. */
class TransactionModelProperties {
    /** Before the wrap, page borders, the middle of the number space, a young cluster. */
    private static final long[] STARTS = {
        3,
        1000,
        0x5_FFFF_FFF0L,
        0x7FFF_FFE0L,
        0x1_0000_0000L + CommitLog.XACTS_PER_PAGE - 20,
        SubTransLog.XACTS_PER_PAGE - 10
    };

    private static final TransactionModel.Parts KERNEL = new TransactionModel.Parts() {};

    @Property(tries = 150)
    @Label("C23: a snapshot sees exactly what had committed when it was taken, across the wrap too")
    void kernelEqualsModel(
            @ForAll long seed,
            @ForAll @IntRange(min = 0, max = 5) int start,
            @ForAll @IntRange(min = 1, max = 4) int cachedSubxids) {
        new TransactionModel(seed, STARTS[start], cachedSubxids, KERNEL).run(120);
    }

    /** The running table is left before pg_xact knows: for a moment it seems aborted. */
    private static final class LeavesTooEarly extends TransactionSession {
        LeavesTooEarly(TransactionManager manager, int database) {
            super(manager, database);
        }

        private boolean commits;

        @Override
        void markCommitted(long lsn) {
            commits = true;
        }

        @Override
        void leave() {
            super.leave();
            if (commits) {
                super.markCommitted(0);
                commits = false;
            }
        }
    }

    /** Tells when a transaction has left. */
    private static class Watched extends RunningTransactions {
        Runnable watcher = () -> {};

        Watched(int slots, int cached, long next) {
            super(slots, cached, next);
        }

        @Override
        void end(int slot, int latestXid) {
            super.end(slot, latestXid);
            watcher.run();
        }
    }

    private static final class WatchedParts implements TransactionModel.Parts {
        private final boolean mutant;

        WatchedParts(boolean mutant) {
            this.mutant = mutant;
        }

        @Override
        public RunningTransactions table(int slots, int cached, long next) {
            return new Watched(slots, cached, next);
        }

        @Override
        public TransactionSession session(TransactionManager manager, int database) {
            return mutant
                    ? new LeavesTooEarly(manager, database)
                    : TransactionModel.Parts.super.session(manager, database);
        }
    }

    private static void runWatched(long seed, boolean mutant) {
        TransactionModel model = new TransactionModel(seed, 1000, 2, new WatchedParts(mutant));
        ((Watched) model.running).watcher = model::whoHasLeftIsDecided;
        model.run(120);
    }

    @Property(tries = 50)
    void whoHasLeftTheRunningTableIsDecidedInPgXact(@ForAll long seed) {
        runWatched(seed, false);
    }

    @Property(tries = 1)
    void leavingBeforePgXactIsFound() {
        expectFound(seed -> runWatched(seed, true));
    }

    /** A subtransaction is published when its session assigns the next one. */
    private static final class LateSubxids extends RunningTransactions {
        private final int[] pending;

        LateSubxids(int slots, int cached, long next) {
            super(slots, cached, next);
            pending = new int[slots];
        }

        @Override
        void addSubxid(int slot, int xid) {
            publish(slot);
            pending[slot] = xid;
        }

        private void publish(int slot) {
            if (pending[slot] != 0) {
                super.addSubxid(slot, pending[slot]);
                pending[slot] = 0;
            }
        }

        @Override
        void endSubtransactions(int slot, DirectBuffer list, int offset, int count) {
            publish(slot);
            super.endSubtransactions(slot, list, offset, count);
        }

        @Override
        void end(int slot, int latestXid) {
            pending[slot] = 0;
            super.end(slot, latestXid);
        }
    }

    @Property(tries = 1)
    void subtransactionsPublishedLateAreFound() {
        expectTableFound(LateSubxids::new);
    }

    /** A snapshot that holds back no horizon. */
    private static final class IgnoresSnapshots extends RunningTransactions {
        IgnoresSnapshots(int slots, int cached, long next) {
            super(slots, cached, next);
        }

        @Override
        void publishXmin(int slot, int xmin) {}
    }

    @Property(tries = 1)
    void aHorizonThatIgnoresASnapshotIsFound() {
        expectTableFound(IgnoresSnapshots::new);
    }

    private interface Table {
        RunningTransactions make(int slots, int cached, long next);
    }

    private static void expectTableFound(Table table) {
        TransactionModel.Parts parts =
                new TransactionModel.Parts() {
                    @Override
                    public RunningTransactions table(int slots, int cached, long next) {
                        return table.make(slots, cached, next);
                    }
                };
        expectFound(seed -> new TransactionModel(seed, 1000, 2, parts).run(120));
    }

    private static void expectFound(LongConsumer run) {
        for (long seed = 0; seed < 200; seed++) {
            try {
                run.accept(seed);
            } catch (AssertionError found) {
                return;
            }
        }
        fail("200 seeds did not find the mutant");
    }
}
