package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.smgr.SmgrRelation;

/**
 * A pool of 16 buffers with three backends, beside a model without a pool: the newest version of
 * each page, and who has what pinned and locked in which scope. One thread plays all backends, so
 * only locks that are tried, or known to be free, are taken.
 */
final class BackendRun implements AutoCloseable {
    static final int BACKENDS = 3;
    static final int BLOCKS = 30;
    private static final int NBUFFERS = 16;

    enum Kind {
        READ,
        READ_ZERO_AND_LOCK,
        PIN_AGAIN,
        RELEASE,
        TRY_SHARED,
        TRY_EXCLUSIVE,
        TRY_CLEANUP,
        UNLOCK,
        CHANGE,
        HINT,
        ENTER,
        SUCCEED,
        FAIL,
        FLUSH,
        EVICT
    }

    /** A scope and, by block, its pins; and its locks. */
    private static final class ScopeModel {
        final BufferScope scope;
        final Map<Integer, Integer> pins = new HashMap<>();
        final Set<Integer> locks = new HashSet<>();

        ScopeModel(BufferScope scope) {
            this.scope = scope;
        }
    }

    private static final class BackendModel {
        final BackendBuffers backend;

        /** Innermost first; the backend's own last. */
        final Deque<ScopeModel> scopes = new ArrayDeque<>();

        /** By block: true if exclusive. */
        final Map<Integer, Boolean> locks = new HashMap<>();

        BackendModel(BackendBuffers backend) {
            this.backend = backend;
            scopes.push(new ScopeModel(null));
        }

        int pins(int block) {
            return scopes.stream().mapToInt(s -> s.pins.getOrDefault(block, 0)).sum();
        }
    }

    final List<String> leaks = new ArrayList<>();
    final RecordingHintLog log = new RecordingHintLog();
    int misuses;
    int noFreeBuffer;
    int leaksExpected;
    int lockRefused;
    int cleanups;
    boolean overflowed;
    boolean abortedWithPins;

    private final PoolFixture f;
    private final SmgrRelation r;
    private final SmgrRelation other;
    private final BackendModel[] backends = new BackendModel[BACKENDS];

    /** The newest version of each block. */
    private final int[] versions = new int[BLOCKS];

    /** Where each pinned block is; -1 if nobody has it pinned. */
    private final int[] buffers = new int[BLOCKS];

    BackendRun(Path directory, DropStrategy strategy, boolean retaining) {
        f = new PoolFixture(directory, false);
        if (retaining) {
            f.retaining();
        }
        f.pool(NBUFFERS, true, strategy);
        f.pool.hintImageLog(log);
        r = f.create(1, ForkNumber.MAIN, BLOCKS);
        other = f.create(2, ForkNumber.MAIN, 2 * NBUFFERS);
        for (int i = 0; i < BACKENDS; i++) {
            backends[i] = new BackendModel(f.pool.backend("b" + i, leaks::add));
        }
        Arrays.fill(buffers, -1);
    }

    void apply(BackendModelProperties.Step step) {
        BackendModel b = backends[step.backend()];
        int block = step.block();
        switch (step.kind()) {
            case READ -> read(b, block);
            case READ_ZERO_AND_LOCK -> readZeroAndLock(b, block);
            case PIN_AGAIN -> {
                if (allowed(b.pins(block) > 0, block, buffer -> b.backend.pinAgain(buffer))) {
                    pinned(b, block, buffers[block]);
                }
            }
            case RELEASE -> release(b, block);
            case TRY_SHARED -> tryLock(b, block, false, false);
            case TRY_EXCLUSIVE -> tryLock(b, block, true, false);
            case TRY_CLEANUP -> tryLock(b, block, true, true);
            case UNLOCK -> {
                if (allowed(b.locks.containsKey(block), block, b.backend::unlock)) {
                    b.locks.remove(block);
                    b.scopes.forEach(s -> s.locks.remove(block));
                }
            }
            case CHANGE -> change(b, block, step.value());
            case HINT -> hint(b, block, step.value());
            case ENTER -> b.scopes.push(new ScopeModel(b.backend.enter("s" + b.scopes.size())));
            case SUCCEED -> leave(b, true);
            case FAIL -> leave(b, false);
            case FLUSH -> flush();
            case EVICT -> evict();
        }
    }

    private interface Use {
        void of(int buffer);
    }

    /** Does it; if the model says that it is wrong use it must be refused. @return as the model */
    private boolean allowed(boolean right, int block, Use use) {
        // Of a block that nobody has pinned we do not know the buffer: any will do.
        int buffer = Math.max(0, buffers[block]);
        if (!right && buffers[block] < 0) {
            for (int i = 0; i < BLOCKS; i++) {
                if (buffers[i] == buffer) {
                    return false; // somebody may have that one by right
                }
            }
        }
        if (right) {
            use.of(buffer);
        } else {
            assertThrows(IllegalStateException.class, () -> use.of(buffer));
            misuses++;
        }
        return right;
    }

    private void read(BackendModel b, int block) {
        boolean full =
                buffers[block] < 0
                        && Arrays.stream(buffers).filter(buffer -> buffer >= 0).count() == NBUFFERS;
        if (full) {
            assertThrows(
                    NoFreeBufferException.class,
                    () -> b.backend.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL));
            noFreeBuffer++;
        } else {
            pinned(b, block, b.backend.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL));
        }
    }

    /** A page that is in the pool stays; one that is not comes as zeros, and is restored. */
    private void readZeroAndLock(BackendModel b, int block) {
        if (b.locks.containsKey(block)) {
            assertThrows(
                    IllegalStateException.class,
                    () -> b.backend.read(r, ForkNumber.MAIN, block, ReadMode.ZERO_AND_LOCK));
            misuses++;
            return;
        }
        if (isLockedByAnother(b, block, false)
                || buffers[block] < 0 && Arrays.stream(buffers).noneMatch(x -> x < 0)) {
            return;
        }
        int buffer;
        try {
            buffer = b.backend.read(r, ForkNumber.MAIN, block, ReadMode.ZERO_AND_LOCK);
        } catch (NoFreeBufferException e) {
            assertTrue(buffers[block] < 0);
            assertEquals(NBUFFERS, Arrays.stream(buffers).filter(x -> x >= 0).count());
            return;
        }
        if (Page.isNew(f.page(buffer))) {
            assertEquals(-1, buffers[block], "a page that somebody had pinned was zeroed");
            f.stamp(buffer, 1, block, versions[block]);
            b.backend.markDirty(buffer);
        }
        pinned(b, block, buffer);
        locked(b, block, true);
    }

    private void pinned(BackendModel b, int block, int buffer) {
        assertTrue(buffers[block] < 0 || buffers[block] == buffer, "a pinned page moved");
        buffers[block] = buffer;
        b.scopes.peek().pins.merge(block, 1, Integer::sum);
        overflowed |= b.backend.pinnedBuffers() > PrivatePins.SLOTS;
    }

    private void locked(BackendModel b, int block, boolean exclusive) {
        b.locks.put(block, exclusive);
        b.scopes.peek().locks.add(block);
    }

    private void release(BackendModel b, int block) {
        boolean lastUnderLock = b.pins(block) == 1 && b.locks.containsKey(block);
        boolean inner = b.scopes.peek().pins.containsKey(block);
        if (allowed(inner && !lastUnderLock, block, b.backend::release)) {
            b.scopes.peek().pins.computeIfPresent(block, (k, n) -> n == 1 ? null : n - 1);
        }
    }

    private void tryLock(BackendModel b, int block, boolean exclusive, boolean cleanup) {
        boolean right = b.pins(block) > 0 && !b.locks.containsKey(block);
        boolean[] had = new boolean[1];
        Use lock =
                buffer ->
                        had[0] =
                                cleanup
                                        ? b.backend.tryLockForCleanup(buffer)
                                        : exclusive
                                                ? b.backend.tryLockExclusive(buffer)
                                                : b.backend.tryLockShared(buffer);
        if (!allowed(right, block, lock)) {
            return;
        }
        boolean free = !isLockedByAnother(b, block, !exclusive);
        boolean alone = b.pins(block) == 1 && holders(block) == 1;
        assertEquals(free && (!cleanup || alone), had[0], "lock of block " + block);
        if (had[0]) {
            locked(b, block, exclusive);
            cleanups += cleanup ? 1 : 0;
        } else {
            lockRefused++;
        }
    }

    private boolean isLockedByAnother(BackendModel b, int block, boolean exclusively) {
        return Arrays.stream(backends)
                .anyMatch(
                        x ->
                                x != b
                                        && x.locks.containsKey(block)
                                        && (!exclusively || x.locks.get(block)));
    }

    private int holders(int block) {
        return (int) Arrays.stream(backends).filter(x -> x.pins(block) > 0).count();
    }

    private void change(BackendModel b, int block, int value) {
        boolean right = b.locks.getOrDefault(block, false);
        Use change =
                buffer -> {
                    if (right) {
                        f.page(buffer).putInt(4104, value);
                    }
                    b.backend.markDirty(buffer);
                };
        if (allowed(right, block, change)) {
            versions[block] = value;
            assertEquals(holders(block) == 1 && b.pins(block) == 1, isCleanupOk(b, block));
        }
    }

    private boolean isCleanupOk(BackendModel b, int block) {
        return b.backend.isCleanupOk(buffers[block]);
    }

    private void hint(BackendModel b, int block, int value) {
        boolean right = b.locks.containsKey(block);
        Use hint =
                buffer -> {
                    if (right) {
                        f.page(buffer).putInt(4104, value);
                    }
                    b.backend.markDirtyHint(buffer, true);
                };
        if (allowed(right, block, hint)) {
            versions[block] = value;
        }
    }

    private void leave(BackendModel b, boolean succeeded) {
        if (b.scopes.size() == 1) {
            return;
        }
        ScopeModel left = b.scopes.pop();
        if (succeeded) {
            left.scope.succeeded();
        }
        left.scope.close();
        left.locks.forEach(b.locks::remove);
        if (!succeeded) {
            abortedWithPins |= !left.pins.isEmpty();
            return;
        }
        leaksExpected += left.pins.size() + left.locks.size();
        for (Map.Entry<Integer, Integer> pin : left.pins.entrySet()) {
            assertTold(" pin backend=", b, left.scope, pin.getValue(), pin.getKey());
        }
        for (int block : left.locks) {
            assertTold(" lock backend=", b, left.scope, 1, block);
        }
    }

    /** The leak was told; takes it off the list, on which nothing may be left. */
    private void assertTold(String what, BackendModel b, BufferScope scope, int n, int block) {
        String start = what + b.backend.name() + " scope=" + scope.name + " count=" + n + " ";
        String end = "rel=1663/5/1 fork=main block=" + block;
        assertTrue(
                leaks.removeIf(leak -> leak.contains(start) && leak.endsWith(end)),
                () -> "not told: " + start + end + " among " + leaks);
    }

    private void flush() {
        // A writer waits for the locks of those who change pages, and we are those.
        if (Arrays.stream(backends).noneMatch(b -> b.locks.containsValue(true))) {
            f.pool.flushAll();
            for (int block = 0; block < BLOCKS; block++) {
                assertEquals(
                        versions[block],
                        f.versionOnDisk(r, ForkNumber.MAIN, block),
                        "not written: block " + block);
            }
        }
    }

    private void evict() {
        for (int i = 0; i < 2 * NBUFFERS; i++) {
            try {
                f.pool.release(f.pool.read(other, ForkNumber.MAIN, i, ReadMode.NORMAL));
            } catch (NoFreeBufferException e) {
                return;
            }
        }
    }

    /** The pool against the model, after every step. */
    void check() {
        assertEquals(List.of(), leaks, "told without a reason");
        for (int block = 0; block < BLOCKS; block++) {
            int buffer = buffers[block];
            if (buffer < 0) {
                continue;
            }
            int holders = holders(block);
            for (BackendModel b : backends) {
                assertEquals(b.pins(block), b.backend.pins(buffer), "private pins");
            }
            if (holders == 0) {
                buffers[block] = -1;
                assertEquals(0, f.refcount(buffer), "pin left on block " + block);
                continue;
            }
            assertEquals(holders, f.refcount(buffer), "pin count of block " + block);
            assertEquals(block, f.pool.block(buffer), "a pinned page was replaced");
            assertEquals(1, f.page(buffer).getInt(4096));
            assertEquals(versions[block], f.version(buffer), "version of block " + block);
        }
        for (BackendModel b : backends) {
            Set<Integer> distinct = new HashSet<>();
            b.scopes.forEach(s -> distinct.addAll(s.pins.keySet()));
            assertEquals(distinct.size(), b.backend.pinnedBuffers());
        }
    }

    /** The end of all backends gives everything up; then the pool is sound and nothing is lost. */
    void finish() {
        for (BackendModel b : backends) {
            while (b.scopes.size() > 1) {
                leave(b, false);
            }
            b.backend.close();
            ScopeModel own = b.scopes.peek();
            assertEquals(own.pins.size() + own.locks.size(), leaks.size(), leaks.toString());
            leaks.clear();
        }
        assertEquals(0, f.pool.pinnedBuffers());
        PoolInspection.check(f.pool);
        for (int block = 0; block < BLOCKS; block++) {
            assertEquals(versions[block], f.readVersion(r, ForkNumber.MAIN, block));
        }
        f.pool.flushAll();
        for (int block = 0; block < BLOCKS; block++) {
            assertEquals(versions[block], f.versionOnDisk(r, ForkNumber.MAIN, block));
        }
    }

    @Override
    public void close() {
        f.close();
    }
}
