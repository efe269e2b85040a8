package org.pgkernel.cluster;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.NanoClock;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.cluster.CatalogRows.ClassRow;
import org.pgkernel.heap.HeapRelation;
import org.pgkernel.heap.VacuumListener;
import org.pgkernel.heap.VacuumOptions;
import org.pgkernel.xact.LockMode;

/**
 * Vacuums tables of our own catalogue now and then: those of which many rows were updated or
 * deleted since their last vacuum, counted in memory only, and those that grow too old. It gives
 * way to who waits for a lock on the table, unless the table is too old, and passes over a table
 * that somebody has locked until its next round. (PostgreSQL: autovacuum.c,
 * relation_needs_vacanalyze; it waits for a table that is too old.)
 */
final class VacuumWorker implements Agent {
    private static final System.Logger LOG = System.getLogger("org.pgkernel.cluster");

    /** (PostgreSQL: autovacuum_naptime.) */
    static final long NAP_NANOS = TimeUnit.MINUTES.toNanos(1);

    /** (PostgreSQL: autovacuum_vacuum_threshold, autovacuum_vacuum_scale_factor.) */
    private static final int THRESHOLD = 50;

    private static final double SCALE = 0.2;

    private final Kernel kernel;
    private final NanoClock clock;
    private final Map<Integer, LongAdder> deadRows = new ConcurrentHashMap<>();
    private Backend backend;
    private long due;

    /** Set by anybody: no more pages are begun. */
    private volatile boolean ending;

    VacuumWorker(Kernel kernel) {
        this.kernel = kernel;
        clock = kernel.options.nanoClock();
        due = clock.nanoTime() + NAP_NANOS;
    }

    @Override
    public String roleName() {
        return "vacuum worker";
    }

    /** Counts rows that updates and deletions leave behind, rolled back or not. Any thread. */
    LongAdder deadRows(int oid) {
        return deadRows.computeIfAbsent(oid, of -> new LongAdder());
    }

    /** Any thread. */
    void end() {
        ending = true;
    }

    /**
     * A round over all tables if it is time.
     *
     * @return tables vacuumed
     */
    @Override
    public int doWork() {
        long now = clock.nanoTime();
        if (now - due < 0 || ending) {
            return 0;
        }
        due = now + NAP_NANOS;
        if (backend == null) {
            backend = kernel.newBackend();
        }
        int vacuumed = 0;
        for (ClassRow row : backend.allTables()) {
            boolean tooOld = isTooOld(row);
            if (row.kind() == CatalogRows.TABLE && (tooOld || hasManyDead(row))) {
                vacuumed += vacuum(row, tooOld) ? 1 : 0;
            }
        }
        return vacuumed;
    }

    private boolean isTooOld(ClassRow row) {
        int next = TransactionId.xidOf(kernel.transactions.nextFullXid());
        return next - row.frozenXid() > kernel.freezeMaxAge();
    }

    private boolean hasManyDead(ClassRow row) {
        return deadRows(row.oid()).sum() > THRESHOLD + SCALE * Math.max(0, row.tuples());
    }

    private boolean vacuum(ClassRow row, boolean tooOld) {
        LongAdder dead = deadRows(row.oid());
        long before = dead.sum();
        try {
            // Who has locked the table may be rolled back only after the workers have ended.
            if (backend.vacuum(row.oid(), VacuumOptions.DEFAULT, new GivesWay(row, tooOld), true)
                    == null) {
                return false;
            }
        } catch (RefusedException e) {
            return false;
        } catch (KernelException e) {
            // One table's trouble must not keep the others from being vacuumed.
            if (KernelStop.isFatal(e)) {
                throw e;
            }
            LOG.log(System.Logger.Level.WARNING, e.getMessage());
            return false;
        }
        dead.add(-before);
        return true;
    }

    private final class GivesWay implements VacuumListener {
        private final ClassRow row;
        private final boolean tooOld;

        GivesWay(ClassRow row, boolean tooOld) {
            this.row = row;
            this.tooOld = tooOld;
        }

        @Override
        public void atBlock(HeapRelation relation, int block, int blocks) {
            boolean isWanted =
                    !tooOld
                            && backend.locks()
                                    .hasWaiters(
                                            backend.database(),
                                            row.oid(),
                                            LockMode.SHARE_UPDATE_EXCLUSIVE);
            if (ending || isWanted) {
                throw new RefusedException("the vacuum gives way: table=" + row.name());
            }
        }
    }
}
