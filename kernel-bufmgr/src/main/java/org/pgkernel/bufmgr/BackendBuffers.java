package org.pgkernel.bufmgr;

import java.util.function.Consumer;
import org.agrona.collections.IntArrayList;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/**
 * One backend's buffers: what it has pinned and locked, and in which scope. The pool counts a
 * backend's pins of a buffer as one; only the first pin and the last release touch the shared state
 * word. So the pool's count is the number of backends that have the page pinned, and a cleanup lock
 * can be refused to a backend that has pinned its page twice. A backend that meets others at the
 * state word of a page may retain its last pin, see {@link PinRetention}; that shows nowhere.
 *
 * <p>Every pin and every content lock belongs to the scope that was innermost when it was taken
 * ({@link #enter}). A pin is released in its scope; whatever a scope still holds when it closes is
 * given up then, and told if the scope had succeeded. A lock may be given up in any scope.
 *
 * <p>Of one thread at a time; with content locks held it stays with its thread. Pins had through
 * {@link BufferPool} itself are not known here: {@link #adopt} takes them over. Wrong use (a
 * release without a pin, say) is an IllegalStateException that names the page, always, before
 * anything was changed. Allocates nothing, except for scopes and when it holds more than ever
 * before. (PostgreSQL: PrivateRefCount, ResourceOwner.)
 */
public final class BackendBuffers implements PageBuffers, AutoCloseable {
    private final BufferPool pool;
    private final String name;
    private final Consumer<String> leaks;
    private final PrivatePins pins = new PrivatePins();

    /** A buffer for each pin, oldest first; those from a scope's mark on are the scope's. */
    private final IntArrayList owned = new IntArrayList();

    /** A buffer for each content lock held, oldest first: as it is if shared, ~ if exclusive. */
    private final IntArrayList locked = new IntArrayList();

    /** Pins that this backend has released and not given back to the pool. */
    private final RetainedPins retained;

    private final BufferScope outermost;
    private BufferScope innermost;

    /** Pin objects that nobody uses. */
    private BufferPin unusedPins;

    BackendBuffers(BufferPool pool, String name, Consumer<String> leaks) {
        this.pool = pool;
        this.name = name;
        this.leaks = leaks;
        retained = pool.retention.pins();
        outermost = new BufferScope(this, "backend", null, 0, 0);
        outermost.succeeded();
        innermost = outermost;
    }

    public String name() {
        return name;
    }

    @Override
    public BufferPool pool() {
        return pool;
    }

    /** Begins a scope inside the innermost one, for try-with-resources. */
    public BufferScope enter(String scope) {
        requireOpen();
        innermost = new BufferScope(this, scope, innermost, owned.size(), locked.size());
        return innermost;
    }

    /**
     * Pins the page, reading it if needed; see {@link BufferPool#read}. A page that this backend
     * has pinned already costs no change of shared memory (if it is among the first few pinned).
     *
     * @return the buffer, pinned (and locked in the locking modes)
     */
    @Override
    public int read(SmgrRelation relation, ForkNumber fork, int block, ReadMode mode) {
        return read(relation, fork, block, mode, null);
    }

    /**
     * The same; a page that is not in the pool gets a buffer of the ring.
     *
     * @param ring this backend's, or null
     */
    public int read(
            SmgrRelation relation,
            ForkNumber fork,
            int block,
            ReadMode mode,
            BufferAccessStrategy ring) {
        requireOpen();
        reserve(1);
        boolean cleanup = mode == ReadMode.ZERO_AND_CLEANUP_LOCK;
        boolean locking = cleanup || mode == ReadMode.ZERO_AND_LOCK;
        int own = ownBuffer(relation, fork, block, locking);
        if (own < 0 && !locking) {
            own =
                    retained.pin(
                            relation.spcOid(),
                            relation.dbOid(),
                            relation.relNumber(),
                            fork.ordinal(),
                            block);
        }
        if (own >= 0) {
            if (cleanup) {
                throw misuse("asks for the cleanup lock of a page that it has pinned", own);
            }
            if (locking) {
                lockExclusive(own);
            }
            note(own);
            pool.io.counters.hit();
            return own;
        }
        int buffer = pool.read(relation, fork, block, mode, ring);
        own(buffer);
        if (locking) {
            locked.addInt(~buffer);
        }
        return buffer;
    }

    /** Adds a zero page at the fork's end; see {@link BufferPool#extend}. */
    public int extend(SmgrRelation relation, ForkNumber fork, boolean lock) {
        requireOpen();
        reserve(1);
        int buffer = pool.extend(relation, fork, lock);
        own(buffer);
        if (lock) {
            locked.addInt(~buffer);
        }
        return buffer;
    }

    /**
     * Pins up to {@code count} neighbouring blocks, as many as {@link #additionalPins} grants; see
     * {@link BufferPool#readMany}.
     */
    public int readMany(
            SmgrRelation relation,
            ForkNumber fork,
            int block,
            int count,
            ReadMode mode,
            BufferAccessStrategy ring,
            int[] buffers) {
        requireOpen();
        int granted = additionalPins(count);
        reserve(granted);
        int got = pool.vectored.read(relation, fork, block, granted, mode, ring, buffers);
        for (int i = 0; i < got; i++) {
            own(buffers[i]);
        }
        return got;
    }

    /**
     * Adds up to {@code count} zero pages, as many as {@link #additionalPins} grants; see {@link
     * BufferPool#extendBy}.
     */
    public int extendBy(
            SmgrRelation relation,
            ForkNumber fork,
            int count,
            BufferAccessStrategy ring,
            int[] buffers,
            boolean lockFirst) {
        requireOpen();
        int granted = additionalPins(count);
        reserve(granted);
        int got = pool.extension.extend(relation, fork, granted, ring, buffers, lockFirst);
        for (int i = 0; i < got; i++) {
            own(buffers[i]);
        }
        if (lockFirst) {
            locked.addInt(~buffers[0]);
        }
        return got;
    }

    /** The same as {@link #read}, as a scope. */
    public BufferPin pin(SmgrRelation relation, ForkNumber fork, int block, ReadMode mode) {
        return pinOf(read(relation, fork, block, mode));
    }

    /** The same as {@link #extend}, as a scope. */
    public BufferPin pinNew(SmgrRelation relation, ForkNumber fork, boolean lock) {
        return pinOf(extend(relation, fork, lock));
    }

    private BufferPin pinOf(int buffer) {
        BufferPin pin = unusedPins;
        if (pin == null) {
            pin = new BufferPin(this);
        } else {
            unusedPins = pin.next;
        }
        pin.hold(buffer, pool);
        return pin;
    }

    void unused(BufferPin pin) {
        pin.next = unusedPins;
        unusedPins = pin;
    }

    /** One more pin on a page that this backend has pinned. (PostgreSQL: IncrBufferRefCount.) */
    public void pinAgain(int buffer) {
        requirePin(buffer);
        reserve(1);
        note(buffer);
    }

    /** Takes over a pin that this thread got through the pool itself; not if it fails. */
    public void adopt(int buffer) {
        requireOpen();
        reserve(1);
        own(buffer);
    }

    /** The pool counts us once: for an earlier pin, or for one that we have retained. */
    private void own(int buffer) {
        if (note(buffer) > 1 || retained.pin(buffer)) {
            pool.allocator.unpin(buffer);
        }
    }

    /**
     * Makes room for the notes of so many pins, and of a lock: before they are taken, as what is
     * taken and cannot be noted for want of memory would never be given up.
     */
    private void reserve(int count) {
        owned.ensureCapacity(owned.size() + count);
        locked.ensureCapacity(locked.size() + 1);
        pins.reserve(count);
    }

    private int note(int buffer) {
        owned.addInt(buffer);
        return pins.add(buffer);
    }

    /**
     * Gives up a pin of the innermost scope; with the last one the page's content lock must have
     * been given up. (PostgreSQL: ReleaseBuffer.)
     */
    @Override
    public void release(int buffer) {
        int count = pins.count(buffer);
        if (count == 0) {
            throw misuse("releases a pin that it does not hold", buffer);
        }
        if (count == 1 && lockIndex(buffer) >= 0) {
            throw misuse("releases its last pin before the content lock", buffer);
        }
        int index = lastOwned(buffer);
        if (index < innermost.firstPin) {
            throw misuse("releases a pin of an outer scope", buffer);
        }
        owned.fastUnorderedRemove(index);
        unpin(buffer);
    }

    private int lastOwned(int buffer) {
        int index = owned.size() - 1;
        while (owned.getInt(index) != buffer) {
            index--;
        }
        return index;
    }

    private void unpin(int buffer) {
        if (pins.remove(buffer) == 0) {
            retained.release(buffer);
        }
    }

    /** Pins that this backend has on the buffer. (PostgreSQL: GetPrivateRefCount.) */
    public int pins(int buffer) {
        return pins.count(buffer);
    }

    /** Buffers that this backend has pinned. */
    public int pinnedBuffers() {
        return pins.distinct();
    }

    /**
     * How many of {@code wanted} more buffers this backend may pin, at least 1; a promise about
     * fairness, not that they can be had. (PostgreSQL 16: LimitAdditionalPins.)
     */
    public int additionalPins(int wanted) {
        return pool.pinLimit.grant(wanted, pins.distinct());
    }

    @Override
    public void lockShared(int buffer) {
        requirePinWithoutLock(buffer);
        pool.lockShared(buffer);
        locked.addInt(buffer);
    }

    @Override
    public void lockExclusive(int buffer) {
        requirePinWithoutLock(buffer);
        pool.lockExclusive(buffer);
        locked.addInt(~buffer);
    }

    public boolean tryLockShared(int buffer) {
        requirePinWithoutLock(buffer);
        if (!pool.tryLockShared(buffer)) {
            return false;
        }
        locked.addInt(buffer);
        return true;
    }

    /** (PostgreSQL: ConditionalLockBuffer.) */
    public boolean tryLockExclusive(int buffer) {
        requirePinWithoutLock(buffer);
        if (!pool.tryLockExclusive(buffer)) {
            return false;
        }
        locked.addInt(~buffer);
        return true;
    }

    /**
     * Exclusive, and no other backend has a pin. Waits for theirs; this backend has exactly one.
     * (PostgreSQL: LockBufferForCleanup.)
     *
     * @throws org.pgkernel.base.error.RefusedException when another backend waits for the same
     */
    public void lockForCleanup(int buffer) {
        requirePinWithoutLock(buffer);
        if (pins.count(buffer) != 1) {
            throw misuse("asks for the cleanup lock of a page that it has pinned", buffer);
        }
        pool.lockForCleanup(buffer);
        locked.addInt(~buffer);
    }

    /**
     * The same without waiting; false also when this backend has more than one pin. (PostgreSQL:
     * ConditionalLockBufferForCleanup.)
     */
    public boolean tryLockForCleanup(int buffer) {
        requirePinWithoutLock(buffer);
        if (pins.count(buffer) != 1 || !pool.tryLockForCleanup(buffer)) {
            return false;
        }
        locked.addInt(~buffer);
        return true;
    }

    /**
     * True if the exclusive lock that this backend holds is as good as a cleanup lock: there is no
     * pin but its one. (PostgreSQL: IsBufferCleanupOK.)
     */
    public boolean isCleanupOk(int buffer) {
        requireExclusive(buffer, "asks about a cleanup lock");
        return pins.count(buffer) == 1 && pool.pinWaiters.isOnlyPin(buffer);
    }

    /** Gives up the content lock, of whatever mode. */
    @Override
    public void unlock(int buffer) {
        int index = lockIndex(buffer);
        if (index < 0) {
            throw misuse("gives up a content lock that it does not hold", buffer);
        }
        locked.removeAt(index);
        for (BufferScope scope = innermost; scope.firstLock > index; scope = scope.outer) {
            scope.firstLock--;
        }
        pool.unlock(buffer);
    }

    /** The caller holds the exclusive lock. (PostgreSQL: MarkBufferDirty.) */
    @Override
    public void markDirty(int buffer) {
        requireExclusive(buffer, "marks a page dirty");
        pool.markDirty(buffer);
    }

    /** The caller holds a content lock; see {@link BufferPool#markDirtyHint(int, boolean)}. */
    @Override
    public void markDirtyHint(int buffer, boolean standardPage) {
        if (lockIndex(buffer) < 0) {
            throw misuse("sets a hint without a content lock", buffer);
        }
        pool.markDirtyHint(buffer, standardPage);
    }

    /** Gives up everything; what is still held is told, as after a scope that succeeded. */
    @Override
    public void close() {
        if (innermost != null) {
            while (innermost != outermost) {
                innermost.close();
            }
            outermost.close();
        }
    }

    /** Closes the scope and those inside it, in the same way. Everything goes, then it is told. */
    void leave(BufferScope scope, boolean tell) {
        for (BufferScope inner = innermost; inner != scope; inner = inner.outer) {
            inner.closed();
        }
        StringBuilder told = null;
        while (locked.size() > scope.firstLock) {
            int entry = locked.popInt();
            int buffer = entry < 0 ? ~entry : entry;
            if (tell) {
                told = add(told, scope, entry < 0 ? "exclusive lock" : "shared lock", 1, buffer);
            }
            pool.unlock(buffer);
        }
        while (owned.size() > scope.firstPin) {
            int buffer = owned.getInt(owned.size() - 1);
            int count = 0;
            for (int i = owned.size() - 1; i >= scope.firstPin; i--) {
                if (owned.getInt(i) == buffer) {
                    owned.fastUnorderedRemove(i);
                    count++;
                }
            }
            if (tell) {
                told = add(told, scope, "pin", count, buffer);
            }
            for (int i = 0; i < count; i++) {
                unpin(buffer);
            }
        }
        innermost = scope.outer;
        if (innermost == null) {
            retained.close();
        }
        if (told != null) {
            told.toString().lines().forEach(leaks);
        }
    }

    /** One line a leak. (PostgreSQL: PrintBufferLeakWarning.) */
    private StringBuilder add(
            StringBuilder told, BufferScope scope, String what, int count, int buffer) {
        return (told == null ? new StringBuilder() : told)
                .append("buffer leak: ")
                .append(what)
                .append(" backend=")
                .append(name)
                .append(" scope=")
                .append(scope.name)
                .append(" count=")
                .append(count)
                .append(" buffer=")
                .append(buffer)
                .append(' ')
                .append(pool.descriptors.place(buffer))
                .append('\n');
    }

    /**
     * The buffer, if this backend has the page pinned. A pinned buffer keeps its tag, and its page
     * stays valid but for an extension that takes it over.
     */
    private int ownBuffer(SmgrRelation relation, ForkNumber fork, int block, boolean all) {
        if (pins.distinct() == 0) {
            return -1;
        }
        BufferDescriptors descriptors = pool.descriptors;
        int spc = relation.spcOid();
        int db = relation.dbOid();
        int rel = relation.relNumber();
        int buffer = pins.find(descriptors, spc, db, rel, fork.ordinal(), block);
        if (buffer < 0 && all && !pins.fitsArray()) {
            for (int i = 0; i < owned.size() && buffer < 0; i++) {
                if (descriptors.hasTag(owned.getInt(i), spc, db, rel, fork.ordinal(), block)) {
                    buffer = owned.getInt(i);
                }
            }
        }
        return buffer >= 0 && (descriptors.state(buffer) & BufferState.VALID) != 0 ? buffer : -1;
    }

    private int lockIndex(int buffer) {
        for (int i = locked.size() - 1; i >= 0; i--) {
            int entry = locked.getInt(i);
            if (entry == buffer || entry == ~buffer) {
                return i;
            }
        }
        return -1;
    }

    private void requireOpen() {
        if (innermost == null) {
            throw new IllegalStateException("the backend is closed backend=" + name);
        }
    }

    private void requirePin(int buffer) {
        if (pins.count(buffer) == 0) {
            throw misuse("has no pin on the page", buffer);
        }
    }

    /** Before a lock is taken; there is room for its note then. */
    private void requirePinWithoutLock(int buffer) {
        locked.ensureCapacity(locked.size() + 1);
        requirePin(buffer);
        if (lockIndex(buffer) >= 0) {
            throw misuse("locks a page that it has locked", buffer);
        }
    }

    private void requireExclusive(int buffer, String what) {
        int index = lockIndex(buffer);
        if (index < 0 || locked.getInt(index) != ~buffer) {
            throw misuse(what + " without its exclusive lock", buffer);
        }
    }

    /** The buffer need not be pinned: its tag is read under its header lock. */
    IllegalStateException misuse(String what, int buffer) {
        BufferDescriptors descriptors = pool.descriptors;
        int state = descriptors.lockHeader(buffer);
        int spc = descriptors.spc(buffer);
        int db = descriptors.db(buffer);
        int rel = descriptors.rel(buffer);
        int fork = descriptors.fork(buffer);
        int block = descriptors.block(buffer);
        descriptors.unlockHeader(buffer, state);
        return new IllegalStateException(
                "backend "
                        + name
                        + " "
                        + what
                        + " buffer="
                        + buffer
                        + " "
                        + Place.of(spc, db, rel, fork, block));
    }
}
