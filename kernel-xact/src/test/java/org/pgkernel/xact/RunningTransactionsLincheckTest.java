package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import org.jetbrains.lincheck.LincheckAssertionError;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.StressOptions;
import org.jetbrains.lincheck.datastructures.ThreadIdGen;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The running table is linearizable: transactions begin and end, and snapshots and questions are
 * answered, as if each happened at one moment (XACT-8).
 */
@Timeout(300)
class RunningTransactionsLincheckTest {
    private static final int FIRST = 100;

    /** Each thread has a slot of its own. */
    @Param(name = "thread", gen = ThreadIdGen.class)
    @Param(name = "xid", gen = IntGen.class, conf = "100:104")
    public static class Table {
        private static final int SLOTS = 6;
        private final RunningTransactions table;
        private final int[] last = new int[SLOTS];

        /** Under the monitor of this object, as the generator's is. */
        private int next = FIRST;

        public Table() {
            this(new RunningTransactions(SLOTS, 8, FIRST));
        }

        Table(RunningTransactions table) {
            this.table = table;
            for (int i = 0; i < SLOTS; i++) {
                table.acquireSlot(5);
            }
        }

        /**
         * @return the xid, of a subtransaction if there is one already
         */
        @Operation
        public int assign(@Param(name = "thread") int thread) {
            int slot = thread % SLOTS;
            synchronized (this) {
                int xid = next++;
                if (last[slot] == 0) {
                    table.addXid(slot, xid);
                } else {
                    table.addSubxid(slot, xid);
                }
                last[slot] = xid;
                return xid;
            }
        }

        @Operation
        public int end(@Param(name = "thread") int thread) {
            int slot = thread % SLOTS;
            int latest = last[slot];
            if (latest != 0) {
                table.end(slot, latest);
                last[slot] = 0;
            }
            return latest;
        }

        /** What is not past xmax, in order: of the rest nothing is promised. */
        @Operation
        public String snapshot(@Param(name = "thread") int thread) {
            Snapshot snapshot = new Snapshot(null, SLOTS, 8);
            table.snapshot(thread % SLOTS, snapshot);
            int[] running =
                    Arrays.stream(
                                    new int[][] {
                                        Arrays.copyOf(snapshot.xip, snapshot.xcnt),
                                        Arrays.copyOf(snapshot.subxip, snapshot.subxcnt)
                                    })
                            .flatMapToInt(Arrays::stream)
                            .filter(xid -> xid < snapshot.xmax())
                            .sorted()
                            .toArray();
            return snapshot.xmin() + ":" + snapshot.xmax() + ":" + Arrays.toString(running);
        }

        @Operation
        public int isInProgress(@Param(name = "xid") int xid) {
            return table.isInProgress(xid);
        }
    }

    /** Two that run, an ended later one: what ends while a snapshot is taken matters to it. */
    @Param(name = "thread", gen = ThreadIdGen.class)
    @Param(name = "slot", gen = IntGen.class, conf = "4:5")
    public static class TwoRun {
        private static final int SLOTS = 6;
        private final RunningTransactions table;
        private final int[] xids = {0, 0, 0, 0, FIRST, FIRST + 1};

        public TwoRun() {
            this(new RunningTransactions(SLOTS, 8, FIRST));
        }

        TwoRun(RunningTransactions table) {
            this.table = table;
            for (int i = 0; i < SLOTS; i++) {
                table.acquireSlot(5);
            }
            table.addXid(4, FIRST);
            table.addXid(5, FIRST + 1);
            table.addXid(3, FIRST + 2);
            table.end(3, FIRST + 2);
        }

        @Operation
        public synchronized int end(@Param(name = "slot") int slot) {
            int xid = xids[slot];
            if (xid != 0) {
                table.end(slot, xid);
                xids[slot] = 0;
            }
            return xid;
        }

        @Operation
        public String snapshot(@Param(name = "thread") int thread) {
            Snapshot snapshot = new Snapshot(null, SLOTS, 8);
            table.snapshot(thread % 3, snapshot);
            return snapshot.toString();
        }
    }

    /** A seeded fault: what was read is taken, whatever ended meanwhile. */
    @Param(name = "thread", gen = ThreadIdGen.class)
    @Param(name = "slot", gen = IntGen.class, conf = "4:5")
    public static class Unvalidated extends TwoRun {
        public Unvalidated() {
            super(
                    new RunningTransactions(6, 8, FIRST) {
                        @Override
                        boolean isUnchanged(long seen) {
                            return true;
                        }
                    });
        }
    }

    @Test
    void theRunningTableIsLinearizable() {
        new StressOptions()
                .iterations(15)
                .invocationsPerIteration(400)
                .threads(3)
                .actorsPerThread(4)
                .check(Table.class);
        modelCheck(Table.class, 15, 300);
        modelCheck(TwoRun.class, 15, 300);
    }

    @Test
    void aSnapshotThatIsNotLookedAtAgainIsFound() {
        assertThrows(LincheckAssertionError.class, () -> modelCheck(Unvalidated.class, 30, 1500));
    }

    private static void modelCheck(Class<?> table, int iterations, int invocations) {
        new ModelCheckingOptions()
                .iterations(iterations)
                .invocationsPerIteration(invocations)
                .threads(2)
                .actorsBefore(0)
                .actorsPerThread(3)
                .actorsAfter(1)
                .check(table);
    }
}
