package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.smgr.SmgrRelation;

/** BUF-14 and BUF-15: private pin counts, and scopes that own pins and locks. */
@Timeout(30)
class BackendBuffersTest {
    @TempDir Path directory;

    final List<String> leaks = new ArrayList<>();
    PoolFixture f;
    SmgrRelation r;
    BackendBuffers backend;

    PoolFixture fixture() {
        return new PoolFixture(directory, false);
    }

    @BeforeEach
    void open() {
        f = fixture().pool(64, true, DropStrategy.FULL_SCAN);
        r = f.create(1, ForkNumber.MAIN, 40);
        backend = f.pool.backend("b1", leaks::add);
    }

    @AfterEach
    void close() {
        backend.close();
        assertEquals(0, f.pool.pinnedBuffers(), "BUF-8: pins left");
        PoolInspection.check(f.pool);
        f.close();
    }

    @Test
    void onlyTheFirstPinAndTheLastReleaseChangeTheSharedWord() {
        int b = read(3);
        int pinned = f.pool.descriptors.state(b);
        assertEquals(1, BufferState.refcount(pinned));
        assertEquals(b, read(3));
        backend.pinAgain(b);
        assertEquals(3, backend.pins(b));
        assertEquals(1, backend.pinnedBuffers());
        backend.release(b);
        backend.release(b);
        assertEquals(pinned, f.pool.descriptors.state(b), "the word was changed in between");
        backend.release(b);
        assertEquals(0, f.refcount(b));
    }

    @Test
    void sharedCountIsTheNumberOfBackends() {
        try (BackendBuffers other = f.pool.backend("b2", leaks::add)) {
            int b = read(3);
            read(3);
            for (int i = 0; i < 3; i++) {
                other.read(r, ForkNumber.MAIN, 3, ReadMode.NORMAL);
            }
            assertEquals(2, f.refcount(b));
            for (int i = 0; i < 3; i++) {
                other.release(b);
            }
            assertEquals(1, f.refcount(b));
            backend.release(b);
            backend.release(b);
        }
        assertEquals(List.of(), leaks);
    }

    @Test
    void morePinsThanTheArrayHoldsAreCountedTheSame() {
        int[] buffers = new int[20];
        for (int round = 1; round <= 3; round++) {
            for (int i = 0; i < 20; i++) {
                buffers[i] = read(i);
                assertEquals(round, backend.pins(buffers[i]));
                assertEquals(1, f.refcount(buffers[i]));
            }
        }
        assertEquals(20, backend.pinnedBuffers());
        for (int i = 0; i < 60; i++) {
            backend.release(buffers[i * 7 % 20]);
        }
        assertEquals(0, backend.pinnedBuffers());
    }

    @Test
    void releaseOfAPinNotHeldNamesBackendAndPageAndTakesNobodysPin() {
        int b = f.pool.read(r, ForkNumber.MAIN, 3, ReadMode.NORMAL); // somebody else's
        assertMisuse(() -> backend.release(b), "b1 releases a pin that it does not hold");
        assertEquals(1, f.refcount(b));
        f.pool.release(b);
    }

    @Test
    void wrongUseIsSaidBeforeAnythingChanges() {
        int b = read(3);
        assertMisuse(() -> backend.unlock(b), "gives up a content lock that it does not hold");
        assertMisuse(() -> backend.markDirty(b), "marks a page dirty without its exclusive lock");
        assertMisuse(() -> backend.markDirtyHint(b, true), "sets a hint without a content lock");
        backend.lockShared(b);
        assertMisuse(() -> backend.lockShared(b), "locks a page that it has locked");
        assertMisuse(() -> backend.lockExclusive(b), "locks a page that it has locked");
        assertMisuse(() -> backend.tryLockForCleanup(b), "locks a page that it has locked");
        assertMisuse(() -> backend.markDirty(b), "marks a page dirty without its exclusive lock");
        assertMisuse(() -> backend.release(b), "releases its last pin before the content lock");
        assertMisuse(
                () -> backend.read(r, ForkNumber.MAIN, 3, ReadMode.ZERO_AND_LOCK),
                "locks a page that it has locked");
        backend.unlock(b);
        backend.release(b);
        assertMisuse(() -> backend.lockShared(b), "has no pin on the page");
        assertMisuse(() -> backend.pinAgain(b), "has no pin on the page");
    }

    @Test
    void cleanupLockAsksForExactlyOneOwnPin() {
        int b = read(3);
        read(3);
        assertFalse(backend.tryLockForCleanup(b));
        assertMisuse(() -> backend.lockForCleanup(b), "asks for the cleanup lock of a page");
        assertMisuse(
                () -> backend.read(r, ForkNumber.MAIN, 3, ReadMode.ZERO_AND_CLEANUP_LOCK),
                "asks for the cleanup lock of a page");
        backend.lockExclusive(b);
        assertFalse(backend.isCleanupOk(b), "two own pins");
        backend.release(b);
        assertTrue(backend.isCleanupOk(b));
        int others = f.pool.read(r, ForkNumber.MAIN, 3, ReadMode.NORMAL);
        assertFalse(backend.isCleanupOk(b), "another's pin");
        backend.unlock(b);
        assertFalse(backend.tryLockForCleanup(b));
        f.pool.release(others);
        assertTrue(backend.tryLockForCleanup(b));
        backend.unlock(b);
        backend.lockForCleanup(b);
        backend.unlock(b);
        backend.release(b);
    }

    @Test
    void cleanupLockOfAPageInTheOverflowIsStillRefusedToItsOwner() {
        for (int i = 0; i < 20; i++) {
            read(i);
        }
        for (int i = 0; i < 20; i++) {
            int block = i;
            assertMisuse(
                    () -> backend.read(r, ForkNumber.MAIN, block, ReadMode.ZERO_AND_CLEANUP_LOCK),
                    "asks for the cleanup lock of a page");
        }
        leaks.clear();
        backend.close();
        assertEquals(20, leaks.size());
    }

    @Test
    void lockingModesComeWithTheLock() {
        int b = backend.read(r, ForkNumber.MAIN, 3, ReadMode.ZERO_AND_LOCK);
        assertFalse(f.pool.tryLockShared(b));
        backend.markDirty(b);
        backend.unlock(b);
        assertEquals(b, backend.read(r, ForkNumber.MAIN, 3, ReadMode.ZERO_AND_LOCK));
        backend.unlock(b);
        backend.release(b);
        backend.release(b);
        int added = backend.extend(r, ForkNumber.MAIN, true);
        backend.markDirty(added);
        backend.unlock(added);
        backend.release(added);
        assertEquals(b, backend.read(r, ForkNumber.MAIN, 3, ReadMode.ZERO_AND_CLEANUP_LOCK));
        assertTrue(backend.isCleanupOk(b));
        backend.unlock(b);
        backend.release(b);
    }

    @Test
    void scopeThatSucceededTellsEachLeakByNameAndReleasesIt() {
        int outer = read(1);
        try (BufferScope scope = backend.enter("query")) {
            int b = read(3);
            backend.pinAgain(b);
            backend.lockExclusive(b);
            int c = read(4);
            backend.lockShared(c);
            read(5);
            backend.release(read(6));
            scope.succeeded();
        }
        String place = " rel=1663/5/1 fork=main block=";
        assertEquals(5, leaks.size(), leaks.toString());
        assertLeak(0, "shared lock backend=b1 scope=query count=1", place + 4);
        assertLeak(1, "exclusive lock backend=b1 scope=query count=1", place + 3);
        assertLeak(2, "pin backend=b1 scope=query count=1", place + 5);
        assertLeak(3, "pin backend=b1 scope=query count=1", place + 4);
        assertLeak(4, "pin backend=b1 scope=query count=2", place + 3);
        assertEquals(1, f.pool.pinnedBuffers(), "only the outer scope's");
        backend.release(outer);
    }

    @Test
    void scopeThatFailedReleasesSilently() {
        assertThrows(
                DiskException.class,
                () -> {
                    try (BufferScope scope = backend.enter("query")) {
                        backend.lockExclusive(read(3));
                        backend.lockShared(read(4));
                        f.disk.beforeRead =
                                (path, offset) -> {
                                    throw new DiskException("planted", DiskException.EIO);
                                };
                        f.pool.dropRelationForks(
                                r, new ForkNumber[] {ForkNumber.MAIN}, new int[] {10}, 1);
                        read(20);
                        scope.succeeded();
                    }
                });
        assertEquals(List.of(), leaks);
        assertEquals(0, f.pool.pinnedBuffers());
    }

    @Test
    void scopeWithoutLeaksTellsNothing() {
        try (BufferScope scope = backend.enter("query")) {
            int b = read(3);
            backend.lockShared(b);
            backend.unlock(b);
            backend.release(b);
            scope.succeeded();
        }
        assertEquals(List.of(), leaks);
    }

    @Test
    void scopeDoesNotReleaseWhatTheOuterOneHasPinnedToo() {
        int b = read(3);
        try (BufferScope scope = backend.enter("inner")) {
            read(3);
            assertEquals(2, backend.pins(b));
        }
        assertEquals(1, backend.pins(b));
        assertEquals(1, f.refcount(b));
        try (BufferScope scope = backend.enter("inner")) {
            assertMisuse(() -> backend.release(b), "releases a pin of an outer scope");
        }
        backend.release(b);
    }

    @Test
    void lockOfTheOuterScopeMayBeGivenUpInTheInnerOne() {
        int b = read(3);
        backend.lockShared(b);
        try (BufferScope scope = backend.enter("inner")) {
            int c = read(4);
            backend.lockShared(c);
            backend.unlock(b);
            scope.succeeded();
        }
        assertEquals(2, leaks.size(), "the inner lock and pin, nothing of the outer scope's");
        assertTrue(leaks.get(0).contains("block=4") && leaks.get(1).contains("block=4"));
        leaks.clear();
        backend.lockShared(b);
        backend.unlock(b);
        backend.release(b);
    }

    @Test
    void closingAScopeClosesThoseInsideIt() {
        BufferScope outer = backend.enter("outer");
        read(1);
        BufferScope inner = backend.enter("inner");
        backend.lockShared(read(2));
        outer.close();
        inner.close();
        assertEquals(0, f.pool.pinnedBuffers());
        int b = read(5);
        inner.close();
        outer.close();
        assertEquals(1, backend.pins(b), "a closed scope took a later pin along");
        backend.release(b);
        assertEquals(List.of(), leaks);
    }

    @Test
    void whatABackendHoldsAtItsEndIsToldAndItIsOfNoUseAfter() {
        read(3);
        backend.enter("forgotten");
        backend.lockShared(read(4));
        backend.close();
        assertEquals(1, leaks.size(), "the open scope counts as failed: " + leaks);
        assertTrue(leaks.getFirst().contains("scope=backend"), leaks.getFirst());
        assertThrows(IllegalStateException.class, () -> read(3));
        assertThrows(IllegalStateException.class, () -> backend.enter("x"));
        backend.close();
    }

    @Test
    void pinsAndLocksAreScopes() {
        try (BufferPin pin = backend.pin(r, ForkNumber.MAIN, 3, ReadMode.NORMAL)) {
            try (ContentLock lock = pin.lockExclusive()) {
                assertNotNull(lock);
                pin.page().putInt(4104, 42);
                pin.markDirty();
                assertFalse(f.pool.tryLockShared(pin.buffer()));
            }
            assertTrue(f.pool.tryLockExclusive(pin.buffer()), "the lock was not given up");
            try (ContentLock none = pin.tryLockShared()) {
                assertNull(none);
            }
            f.pool.unlock(pin.buffer());
            try (ContentLock lock = pin.tryLockForCleanup()) {
                assertNotNull(lock);
            }
            assertEquals(3, pin.block());
        }
        assertEquals(0, f.pool.pinnedBuffers());
        assertEquals(42, f.readVersion(r, ForkNumber.MAIN, 3));
        try (BufferPin pin = backend.pinNew(r, ForkNumber.MAIN, true);
                ContentLock lock = pin.heldLock()) {
            assertEquals(40, pin.block());
        }
        BufferPin closed = backend.pin(r, ForkNumber.MAIN, 3, ReadMode.NORMAL);
        closed.close();
        assertThrows(IllegalStateException.class, closed::close);
        assertThrows(IllegalStateException.class, closed::page);
    }

    @Test
    void adoptedPinsAreOwnedLikeOthers() {
        int b = f.pool.read(r, ForkNumber.MAIN, 3, ReadMode.NORMAL);
        backend.adopt(b);
        backend.adopt(f.pool.read(r, ForkNumber.MAIN, 3, ReadMode.NORMAL));
        assertEquals(2, backend.pins(b));
        assertEquals(1, f.refcount(b));
        backend.release(b);
        backend.release(b);
    }

    @Test
    @DisplayName("R09: a backend's share of the pool limits additional pins; one is always granted")
    void additionalPinsAreLimitedToABackendsShare() {
        f.pool.maxBackends(8); // of 64 buffers, 8 each
        assertEquals(8, backend.additionalPins(100));
        assertEquals(5, backend.additionalPins(5));
        for (int i = 0; i < 6; i++) {
            read(i);
            read(i);
        }
        assertEquals(2, backend.additionalPins(100), "pins of one buffer count once");
        assertEquals(1, backend.additionalPins(1));
        for (int i = 6; i < 12; i++) {
            read(i);
        }
        assertEquals(1, backend.additionalPins(100), "over its share: one all the same");
        assertEquals(8, f.pool.additionalPins(100));
        f.pool.maxBackends(1000);
        assertEquals(1, f.pool.additionalPins(100), "a share of less than one buffer");
        assertThrows(RefusedException.class, () -> f.pool.maxBackends(0));
        leaks.clear();
        backend.close();
    }

    @Test
    @DisplayName("R09: all backends can take their share at once; none is left after a failure")
    void theSharesOfAllBackendsFitThePool() {
        f.pool.maxBackends(4);
        List<BackendBuffers> all = new ArrayList<>();
        AtomicInteger block = new AtomicInteger();
        SmgrRelation large = f.create(2, ForkNumber.MAIN, 70);
        for (int i = 0; i < 4; i++) {
            BackendBuffers one = f.pool.backend("share" + i, leaks::add);
            all.add(one);
            one.enter("extension");
            for (int granted = one.additionalPins(100); granted > 0; granted--) {
                one.read(large, ForkNumber.MAIN, block.getAndIncrement(), ReadMode.NORMAL);
            }
        }
        assertEquals(64, block.get());
        assertEquals(64, f.pool.pinnedBuffers());
        all.forEach(BackendBuffers::close);
        assertEquals(0, f.pool.pinnedBuffers());
        assertEquals(List.of(), leaks);
    }

    @Test
    @DisplayName(
            "R09: bulk extension takes no more pins than granted; none is left on success or failure")
    void bulkExtensionAndReadsKeepToTheLimitAndOwnTheirPins() {
        f.pool.maxBackends(16); // of 64 buffers, 4 each
        int[] buffers = new int[20];
        try (BufferScope scope = backend.enter("bulk")) {
            assertEquals(4, backend.extendBy(r, ForkNumber.MAIN, 20, null, buffers, true));
            assertEquals(4, backend.pinnedBuffers());
            backend.markDirty(buffers[0]);
            int[] more = new int[20];
            assertEquals(
                    1, backend.readMany(r, ForkNumber.MAIN, 0, 20, ReadMode.NORMAL, null, more));
            assertEquals(5, f.pool.pinnedBuffers());
            backend.release(more[0]);
            backend.unlock(buffers[0]);
            for (int i = 0; i < 4; i++) {
                assertEquals(40 + i, f.pool.block(buffers[i]));
                backend.release(buffers[i]);
            }
            scope.succeeded();
        }
        f.disk.beforeWrite =
                (path, offset) -> {
                    throw new DiskException("planted file=" + path, DiskException.ENOSPC);
                };
        assertThrows(
                DiskException.class,
                () -> backend.extendBy(r, ForkNumber.MAIN, 20, null, buffers, true));
        f.disk.beforeWrite = (path, offset) -> {};
        assertEquals(0, backend.pinnedBuffers());
        assertEquals(0, f.pool.pinnedBuffers());
        assertEquals(44, r.nblocks(ForkNumber.MAIN));
        assertEquals(List.of(), leaks);
    }

    private int read(int block) {
        return backend.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL);
    }

    private void assertLeak(int index, String... parts) {
        for (String part : parts) {
            assertTrue(leaks.get(index).contains(part), leaks.get(index));
        }
    }

    private static void assertMisuse(Executable use, String what) {
        IllegalStateException e = assertThrows(IllegalStateException.class, use);
        assertTrue(e.getMessage().contains(what), e.getMessage());
        assertTrue(e.getMessage().contains(" rel=1663/5/1 fork=main block="), e.getMessage());
    }
}
