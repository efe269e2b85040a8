package org.pgkernel.heap;

import org.agrona.DirectBuffer;
import org.pgkernel.heap.TupleVisibility.VacuumHorizon;

/** What a scan or fetch sees: one of PostgreSQL's kinds of snapshot. Immutable. */
public final class HeapSnapshot {
    /** As of now, own changes included. (PostgreSQL: SnapshotSelf.) */
    public static final HeapSnapshot SELF = new HeapSnapshot(Kind.SELF, null, null);

    /** Every tuple. (PostgreSQL: SnapshotAny.) */
    public static final HeapSnapshot ANY = new HeapSnapshot(Kind.ANY, null, null);

    /**
     * As of now, changes of running transactions counted as made; the backend's {@link
     * TupleVisibility} tells whose. (PostgreSQL: SnapshotDirty.)
     */
    public static final HeapSnapshot DIRTY = new HeapSnapshot(Kind.DIRTY, null, null);

    /** Chunks of long values, for who has the row. (PostgreSQL: SnapshotToast.) */
    static final HeapSnapshot TOAST = new HeapSnapshot(Kind.TOAST, null, null);

    private enum Kind {
        MVCC,
        SELF,
        ANY,
        TOAST,
        DIRTY,
        NON_VACUUMABLE
    }

    private final Kind kind;
    private final Snapshot mvcc;
    private final VacuumHorizon horizon;

    private HeapSnapshot(Kind kind, Snapshot mvcc, VacuumHorizon horizon) {
        this.kind = kind;
        this.mvcc = mvcc;
        this.horizon = horizon;
    }

    /** What this snapshot sees, however often it is filled anew. (PostgreSQL: SNAPSHOT_MVCC.) */
    public static HeapSnapshot mvcc(Snapshot snapshot) {
        return new HeapSnapshot(Kind.MVCC, snapshot, null);
    }

    /** What vacuum may not remove yet. (PostgreSQL: SNAPSHOT_NON_VACUUMABLE.) */
    public static HeapSnapshot nonVacuumable(VacuumHorizon horizon) {
        return new HeapSnapshot(Kind.NON_VACUUMABLE, null, horizon);
    }

    /** Page-wise visibility, pruning and the all-visible shortcut are an MVCC snapshot's only. */
    boolean isMvcc() {
        return kind == Kind.MVCC;
    }

    /** (PostgreSQL: HeapTupleSatisfiesVisibility.) */
    boolean sees(TupleVisibility visibility, DirectBuffer in, int at, HintBits hints) {
        return switch (kind) {
            case MVCC -> visibility.satisfiesMvcc(in, at, mvcc, hints);
            case SELF -> visibility.satisfiesSelf(in, at, hints);
            case ANY -> true;
            case TOAST -> TupleVisibility.satisfiesToast(in, at);
            case DIRTY -> visibility.satisfiesDirty(in, at, hints);
            case NON_VACUUMABLE -> visibility.satisfiesNonVacuumable(in, at, horizon, hints);
        };
    }
}
