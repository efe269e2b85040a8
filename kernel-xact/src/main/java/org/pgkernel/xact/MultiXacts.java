package org.pgkernel.xact;

import java.util.concurrent.atomic.AtomicIntegerArray;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.wal.WalRecordBuilder;

/**
 * Creates and reads multixacts: several transactions that hold locks on one row, or have changed
 * it.
 *
 * <p>All of a creation, the record and the log's entries included, is done under the monitor of
 * this object. So who reads the counters there knows that every multixact before them is whole, and
 * that the next one's first member is where the last one's members end. A checkpoint passes through
 * the monitor once after its redo point is set: whatever was logged before it is in the log.
 * (PostgreSQL: multixact.c; MultiXactGenLock is given up earlier there.)
 */
public final class MultiXacts {
    private static final int WRAP = Integer.MAX_VALUE;
    private static final int WARN_BEFORE = 40_000_000;
    private static final int STOP_BEFORE = 3_000_000;
    private static final int MEMBERS_PER_SEGMENT =
            MultiXactLog.MEMBERS_PER_PAGE * Slru.PAGES_PER_SEGMENT;
    private static final long SAFE_MEMBERS = 0xFFFFFFFFL / 2;
    private static final long DANGER_MEMBERS = 0xFFFFFFFFL - 0xFFFFFFFFL / 4;

    private final TransactionManager manager;
    private final MultiXactLog log;
    private final XactCounters counters;
    private final WraparoundListener listener;
    private final int freezeMaxAge;

    // Under the monitor: what a creation builds with, and where the oldest members begin.
    private final WalRecordBuilder builder = new WalRecordBuilder();
    private final UnsafeBuffer page = new UnsafeBuffer(new byte[4]);
    private int oldestOffset;
    private boolean oldestOffsetKnown;

    // Per slot, 0 for none: set by the slot's session under the monitor, cleared by it without.
    private final AtomicIntegerArray oldestMember;
    private final AtomicIntegerArray oldestVisible;

    MultiXacts(
            TransactionManager manager,
            XactModule module,
            XactOptions options,
            WraparoundListener listener) {
        this.manager = manager;
        this.log = module.multiXacts();
        this.counters = module.xactCounters();
        this.listener = listener;
        this.freezeMaxAge = options.multixactFreezeMaxAge();
        oldestMember = new AtomicIntegerArray(options.sessions());
        oldestVisible = new AtomicIntegerArray(options.sessions());
        findOldestOffset();
    }

    /** After the wrap the counter may stand at 0, which is none. */
    private static int valid(int multi) {
        return multi == 0 ? MultiXactLog.FIRST_MULTI : multi;
    }

    /** (PostgreSQL: SetOffsetVacuumLimit.) */
    private synchronized void findOldestOffset() {
        int oldest = counters.oldestMulti();
        if (oldest == valid(counters.nextMulti())) {
            oldestOffset = counters.nextMultiOffset();
            oldestOffsetKnown = true;
            return;
        }
        try {
            oldestOffset = log.memberOffset(oldest);
            oldestOffsetKnown = true;
        } catch (DamagedDataException e) {
            listener.warning(
                    "there is no protection against wraparound of multixact members, the oldest"
                            + " multixact is missing: "
                            + e.getMessage());
        }
    }

    /** The multixact that is created next. */
    public int nextMulti() {
        return valid(counters.nextMulti());
    }

    /**
     * Before the session looks at a row that it may lock: no multixact that it may become a member
     * of is older. Lasts until its transaction ends. (PostgreSQL: MultiXactIdSetOldestMember.)
     */
    public void setOldestMember(TransactionSession session) {
        if (oldestMember.get(session.slot) == 0) {
            synchronized (this) {
                oldestMember.set(session.slot, nextMulti());
            }
        }
    }

    private void setOldestVisible(int slot) {
        if (oldestVisible.get(slot) == 0) {
            synchronized (this) {
                oldestVisible.set(slot, oldest(oldestMember, nextMulti()));
            }
        }
    }

    private static int oldest(AtomicIntegerArray of, int start) {
        int oldest = start;
        for (int i = 0; i < of.length(); i++) {
            int multi = of.get(i);
            if (multi != 0 && MultiXactLog.precedes(multi, oldest)) {
                oldest = multi;
            }
        }
        return oldest;
    }

    /**
     * No multixact before it has a running member, nor does anybody ask for one. (PostgreSQL:
     * GetOldestMultiXactId.)
     */
    public synchronized int oldestMulti() {
        return oldest(oldestVisible, oldest(oldestMember, nextMulti()));
    }

    /** (PostgreSQL: AtEOXact_MultiXact.) */
    void endTransaction(int slot) {
        if (oldestMember.get(slot) != 0) {
            oldestMember.set(slot, 0);
        }
        if (oldestVisible.get(slot) != 0) {
            oldestVisible.set(slot, 0);
        }
    }

    /** Creates a multixact of two transactions. (PostgreSQL: MultiXactIdCreate.) */
    public int create(TransactionSession session, int xid1, int status1, int xid2, int status2) {
        assert xid1 != xid2 || status1 != status2;
        assert oldestMember.get(session.slot) != 0 : "setOldestMember was not called";
        return create(session, new MultiXactMembers().add(xid1, status1).add(xid2, status2));
    }

    /**
     * Creates a multixact.
     *
     * @throws RefusedException when it has two members that changed the row, or when no multixact
     *     can be created without danger (PostgreSQL: MultiXactIdCreateFromMembers)
     */
    public int create(TransactionSession session, MultiXactMembers members) {
        int updates = 0;
        for (int i = 0; i < members.count(); i++) {
            updates += MultiXactMembers.isUpdate(members.status(i)) ? 1 : 0;
        }
        if (members.count() == 0 || updates > 1) {
            throw new RefusedException(
                    "a multixact cannot have "
                            + members.count()
                            + " members of which "
                            + updates
                            + " changed the row");
        }
        manager.checkUsable();
        warn();
        synchronized (this) {
            int multi = nextMulti();
            refuseIfPastLimit(multi);
            int first = counters.nextMultiOffset();
            // Offset 0 is never a beginning: PostgreSQL takes it for an entry not filled in yet.
            int offset = first == 0 ? 1 : first;
            int taken = members.count() + (offset - first);
            refuseIfMembersFull(first, taken, members.count());
            extendOffsets(multi);
            extendMembers(first, taken);
            try {
                DirectBuffer record = members.record(multi, offset);
                manager.wal()
                        .insert(
                                builder.begin(
                                                RmgrIds.MULTIXACT,
                                                MultiXactResourceManager.CREATE_ID,
                                                session.xidIfAny())
                                        .data(record, 0, members.recordLength()));
                log.record(multi, offset, record, MultiXactMembers.HEADER, members.count());
            } catch (RuntimeException | Error e) {
                throw manager.stop("creation of multixact " + Integer.toUnsignedString(multi), e);
            }
            counters.nextMulti(multi + 1, first + taken);
            return multi;
        }
    }

    /**
     * A multixact with one more member, or a stronger one; who has ended and changed nothing is
     * left out. Returns the same if the transaction is in it so already. (PostgreSQL:
     * MultiXactIdExpand.)
     */
    public int expand(TransactionSession session, int multi, int xid, int status) {
        assert oldestMember.get(session.slot) != 0 : "setOldestMember was not called";
        MultiXactMembers old = new MultiXactMembers();
        read(session, multi, old);
        MultiXactMembers kept = new MultiXactMembers();
        for (int i = 0; i < old.count(); i++) {
            if (old.xid(i) == xid && old.status(i) == status) {
                return multi;
            }
            boolean changed =
                    MultiXactMembers.isUpdate(old.status(i)) && manager.didCommit(old.xid(i));
            if (changed || isRunning(session, old.xid(i))) {
                kept.add(old.xid(i), old.status(i));
            }
        }
        return create(session, kept.add(xid, status));
    }

    private boolean isRunning(TransactionSession session, int xid) {
        return session.isCurrent(xid) || manager.isInProgress(xid);
    }

    /** True if a member runs. (PostgreSQL: MultiXactIdIsRunning.) */
    public boolean hasRunningMember(TransactionSession session, int multi) {
        MultiXactMembers members = new MultiXactMembers();
        read(session, multi, members);
        for (int i = 0; i < members.count(); i++) {
            if (isRunning(session, members.xid(i))) {
                return true;
            }
        }
        return false;
    }

    /**
     * Reads the members of a multixact.
     *
     * @throws DamagedDataException when there is none of this number (PostgreSQL:
     *     GetMultiXactIdMembers)
     */
    public void read(TransactionSession session, int multi, MultiXactMembers into) {
        setOldestVisible(session.slot);
        int next;
        int nextOffset;
        synchronized (this) {
            next = counters.nextMulti();
            nextOffset = counters.nextMultiOffset();
        }
        if (MultiXactLog.precedes(multi, counters.oldestMulti())) {
            throw none(multi, "does not exist any more");
        }
        if (multi == 0 || !MultiXactLog.precedes(multi, valid(next))) {
            throw none(multi, "has not been created yet");
        }
        int offset = log.memberOffset(multi);
        int end = multi + 1 == next ? nextOffset : log.memberOffset(valid(multi + 1));
        if (Integer.compareUnsigned(end - offset, MEMBERS_PER_SEGMENT) > 0) {
            throw none(multi, "has too many members: " + Integer.toUnsignedString(end - offset));
        }
        into.clear();
        for (int at = offset; at != end; at++) {
            int xid = log.memberXid(at);
            // Only the member slot 0, left out at the wrap of the offsets, has no xid.
            if (xid != 0) {
                into.add(xid, log.memberStatus(at));
            }
        }
    }

    private static DamagedDataException none(int multi, String why) {
        return new DamagedDataException("multixact " + Integer.toUnsignedString(multi) + " " + why);
    }

    private void extendOffsets(int multi) {
        if (Integer.remainderUnsigned(multi, MultiXactLog.OFFSETS_PER_PAGE) == 0
                || multi == MultiXactLog.FIRST_MULTI) {
            int number = MultiXactLog.offsetPageOf(multi);
            log.zeroOffsetsPage(number);
            logZeroPage(MultiXactResourceManager.ZERO_OFF_PAGE, number);
        }
    }

    /** Pages that begin within the members. (PostgreSQL: ExtendMultiXactMember.) */
    private void extendMembers(int first, int count) {
        for (int i = 0; i < count; i++) {
            int at = first + i;
            if (Integer.remainderUnsigned(at, MultiXactLog.MEMBERS_PER_PAGE) == 0) {
                int number = MultiXactLog.memberPageOf(at);
                log.zeroMembersPage(number);
                logZeroPage(MultiXactResourceManager.ZERO_MEM_PAGE, number);
            }
        }
    }

    private void logZeroPage(int info, int number) {
        page.putInt(0, number);
        manager.wal().insert(builder.begin(RmgrIds.MULTIXACT, info, 0).data(page, 0, 4));
    }

    private static int before(int multi, int by) {
        int limit = multi - by;
        return limit == 0 ? limit - MultiXactLog.FIRST_MULTI : limit;
    }

    private int wrapLimit() {
        return valid(counters.oldestMulti() + WRAP);
    }

    /** (PostgreSQL: GetNewMultiXactId, multiVacLimit and multiWarnLimit.) */
    private void warn() {
        int multi = nextMulti();
        if (MultiXactLog.precedes(multi, valid(counters.oldestMulti() + freezeMaxAge))) {
            return;
        }
        int wrap = wrapLimit();
        boolean stops = !MultiXactLog.precedes(multi, before(wrap, STOP_BEFORE));
        if (stops || (multi & 0xFFFF) == 0) {
            listener.vacuumNeeded(counters.oldestMultiDb());
        }
        if (!stops && !MultiXactLog.precedes(multi, before(wrap, WARN_BEFORE))) {
            listener.warning(
                    "the database with OID "
                            + Integer.toUnsignedString(counters.oldestMultiDb())
                            + " must be vacuumed before "
                            + Integer.toUnsignedString(wrap - multi)
                            + " more multixacts are used");
        }
    }

    private void refuseIfPastLimit(int multi) {
        if (!MultiXactLog.precedes(multi, before(wrapLimit(), STOP_BEFORE))) {
            throw new RefusedException(
                    "no multixact can be created without losing data to wraparound: vacuum the"
                            + " database with OID "
                            + Integer.toUnsignedString(counters.oldestMultiDb())
                            + "; next="
                            + Integer.toUnsignedString(multi)
                            + " oldest="
                            + Integer.toUnsignedString(counters.oldestMulti()));
        }
    }

    /** One segment stays free before the oldest members. */
    private void refuseIfMembersFull(int first, int taken, int members) {
        if (!oldestOffsetKnown) {
            return;
        }
        int stop =
                oldestOffset
                        - Integer.remainderUnsigned(oldestOffset, MEMBERS_PER_SEGMENT)
                        - MEMBERS_PER_SEGMENT;
        if (wouldWrap(stop, first, taken)) {
            throw new RefusedException(
                    "a multixact of "
                            + members
                            + " members cannot be created, there is room for "
                            + Integer.toUnsignedString(stop - first - 1)
                            + ": vacuum the database with OID "
                            + Integer.toUnsignedString(counters.oldestMultiDb())
                            + " with a lower freeze age of multixacts");
        }
    }

    /** True if {@code distance} members from {@code start} on reach the boundary. */
    static boolean wouldWrap(int boundary, int start, int distance) {
        int finish = start + distance;
        if (Integer.compareUnsigned(finish, start) < 0) {
            finish++;
        }
        boolean reaches = Integer.compareUnsigned(finish, boundary) >= 0;
        boolean wrapped = Integer.compareUnsigned(finish, start) < 0;
        return Integer.compareUnsigned(start, boundary) < 0
                ? reaches || wrapped
                : reaches && wrapped;
    }

    /**
     * Falls as the members fill up, so that vacuum frees some in time. (PostgreSQL:
     * MultiXactMemberFreezeThreshold.)
     */
    synchronized int effectiveFreezeMaxAge() {
        if (!oldestOffsetKnown) {
            return 0;
        }
        long members = Integer.toUnsignedLong(counters.nextMultiOffset() - oldestOffset);
        if (members <= SAFE_MEMBERS) {
            return freezeMaxAge;
        }
        long multis = Integer.toUnsignedLong(nextMulti() - counters.oldestMulti());
        double fraction = (double) (members - SAFE_MEMBERS) / (DANGER_MEMBERS - SAFE_MEMBERS);
        long victims = (long) (multis * fraction);
        return (int) Math.max(0, multis - victims);
    }

    /** Nobody who began to create a multixact before this call is at it still. */
    synchronized void awaitCreation() {}

    /**
     * Removes what lies before the new oldest multixact. The record is durable before, and a
     * checkpoint waits until the files are gone: replay from its redo point on must find either the
     * record or no files. (PostgreSQL: TruncateMultiXact.)
     */
    void truncate(TransactionSession session, int newOldest, int db) {
        int oldest = counters.oldestMulti();
        if (!MultiXactLog.precedes(oldest, newOldest)) {
            return;
        }
        int from;
        int to;
        synchronized (this) {
            if (!oldestOffsetKnown || MultiXactLog.precedes(nextMulti(), newOldest)) {
                return;
            }
            from = oldestOffset;
            to =
                    newOldest == nextMulti()
                            ? counters.nextMultiOffset()
                            : log.memberOffset(newOldest);
        }
        UnsafeBuffer data = new UnsafeBuffer(new byte[20]);
        data.putInt(0, db);
        data.putInt(4, oldest);
        data.putInt(8, newOldest);
        data.putInt(12, from);
        data.putInt(16, to);
        manager.running().enterCommit(session.slot);
        try {
            manager.wal()
                    .flush(
                            manager.wal()
                                    .insert(
                                            new WalRecordBuilder()
                                                    .begin(
                                                            RmgrIds.MULTIXACT,
                                                            MultiXactResourceManager.TRUNCATE_ID,
                                                            session.xidIfAny())
                                                    .data(data, 0, 20)));
            synchronized (this) {
                counters.oldestMulti(newOldest, db);
                oldestOffset = to;
                log.truncate(newOldest, from, to);
                log.offsets().latestPage(MultiXactLog.offsetPageOf(nextMulti()));
            }
        } catch (RuntimeException | Error e) {
            throw manager.stop("truncation of pg_multixact", e);
        }
        manager.running().leaveCommit(session.slot);
    }
}
