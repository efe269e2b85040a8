package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.smgr.SmgrRelation;

/** BUF-24: pins that a backend retains are there for it, and for nobody in the way. */
@Timeout(60)
class RetentionTest {
    private static final ForkNumber MAIN = ForkNumber.MAIN;
    private static final int NBUFFERS = 16;

    @TempDir Path directory;

    private final List<String> leaks = new ArrayList<>();

    /** The next release meets somebody else at the buffer's state word. */
    private boolean meets;

    private PoolFixture f;
    private SmgrRelation r;
    private SmgrRelation other;
    private int opened;
    private BackendBuffers one;
    private BackendBuffers two;

    @BeforeEach
    void open() {
        open(BufferPoolOptions.of(NBUFFERS));
    }

    private void open(BufferPoolOptions options) {
        f = new PoolFixture(directory.resolve("" + opened++), false).pool(options, new Meetings());
        f.pool.maxBackends(2);
        other = f.create(2, MAIN, 40);
        f.pool.dropRelations(new SmgrRelation[] {other}, 1);
        r = f.create(1, MAIN, NBUFFERS); // every buffer holds one of its pages
        one = f.pool.backend("one", leaks::add);
        two = f.pool.backend("two", leaks::add);
    }

    @AfterEach
    void close() {
        one.close();
        two.close();
        for (int buffer = 0; buffer < NBUFFERS; buffer++) {
            assertEquals(0, count(buffer), "a pin was left at the end of its backend");
        }
        assertEquals(List.of(), leaks, "a pin that is only retained is no leak");
        PoolInspection.check(f.pool);
        f.close();
    }

    /** Whose releases meet others when the test says so. */
    private final class Meetings extends DropParts {
        @Override
        BufferDescriptors descriptors(PoolMemory memory, DirtyBitmap dirty) {
            return new BufferDescriptors(memory, dirty) {
                @Override
                int unpinUnlessContended(int buffer) {
                    if (meets) {
                        meets = false;
                        return CONTENDED;
                    }
                    return super.unpinUnlessContended(buffer);
                }
            };
        }
    }

    /** The pin count as it stands in the state word. */
    private int count(int buffer) {
        return BufferState.refcount(f.pool.descriptors.state(buffer));
    }

    private int read(BackendBuffers backend, int block) {
        return backend.read(r, MAIN, block, ReadMode.NORMAL);
    }

    /** Leaves the page with an idle pin of the backend's. */
    private int retain(BackendBuffers backend, int block) {
        int buffer = read(backend, block);
        meets = true;
        backend.release(buffer);
        assertTrue(f.pool.retention.slots(buffer) > 0, "not retained");
        return buffer;
    }

    @Test
    void whoMeetsNobodyRetainsNothing() {
        for (int i = 0; i < 1000; i++) {
            int buffer = read(one, i % 10);
            one.release(buffer);
            assertEquals(0, count(buffer));
        }
    }

    @Test
    void aRetainedPageIsUsedWithoutAChangeOfItsStateWord() {
        int buffer = retain(one, 3);
        long word = f.pool.descriptors.word(buffer);
        for (int i = 0; i < 3; i++) {
            assertEquals(buffer, read(one, 3));
            assertEquals(1, one.pins(buffer));
            assertEquals(1, f.refcount(buffer));
            one.pinAgain(buffer);
            one.release(buffer);
            one.release(buffer);
            assertEquals(0, f.refcount(buffer));
        }
        assertEquals(word, f.pool.descriptors.word(buffer));
    }

    @Test
    void othersRetainTheirPinsOfAHotPageTooUntilOnePinIsTakenBack() {
        int buffer = retain(one, 3);
        two.release(read(two, 3));
        assertEquals(2, f.pool.retention.slots(buffer));
        assertEquals(2, f.pool.retention.takeBack(buffer));
        two.release(read(two, 3));
        one.release(read(one, 3));
        assertEquals(0, count(buffer), "hot for ever");
    }

    @Test
    void thePartitionLockStyleRetainsNothing() {
        close();
        open(BufferPoolOptions.of(NBUFFERS).withLookupStyle(LookupStyle.PARTITION_LOCK));
        int buffer = read(one, 3);
        meets = true;
        one.release(buffer);
        assertEquals(0, count(buffer));
    }

    @Test
    void aFifthPinMakesRoomForItselfAndPinsInUseAreNotTouched() {
        int[] buffers = new int[5];
        for (int i = 0; i < 5; i++) {
            buffers[i] = retain(one, i);
        }
        int idle = 0;
        for (int buffer : buffers) {
            idle += count(buffer);
        }
        assertEquals(RetainedPins.SLOTS, idle);
        for (int i = 1; i < 5; i++) {
            assertEquals(buffers[i], read(one, i));
        }
        int another = read(one, 10); // all four slots are in use
        meets = true;
        one.release(another);
        assertEquals(0, count(another));
        for (int i = 1; i < 5; i++) {
            assertEquals(1, f.refcount(buffers[i]));
            one.release(buffers[i]);
        }
    }

    @ParameterizedTest
    @EnumSource(Replacement.class)
    void idlePinsKeepNoPageInThePool(Replacement policy) {
        close();
        open(BufferPoolOptions.of(NBUFFERS).withReplacement(policy));
        List<BackendBuffers> backends = new ArrayList<>();
        for (int i = 0; i < NBUFFERS / RetainedPins.SLOTS; i++) {
            backends.add(f.pool.backend("b" + i, leaks::add));
            for (int j = 0; j < RetainedPins.SLOTS; j++) {
                retain(backends.get(i), RetainedPins.SLOTS * i + j);
            }
        }
        for (int buffer = 0; buffer < NBUFFERS; buffer++) {
            assertEquals(1, count(buffer), "every buffer has an idle pin");
        }
        for (int block = 0; block < 40; block++) {
            assertEquals(0, f.readVersion(other, MAIN, block));
        }
        backends.forEach(BackendBuffers::close);
    }

    @ParameterizedTest
    @EnumSource(Replacement.class)
    void pinsInUseAreStillAReasonToBeTold(Replacement policy) {
        close();
        open(BufferPoolOptions.of(NBUFFERS).withReplacement(policy));
        int[] buffers = new int[NBUFFERS];
        for (int i = 0; i < NBUFFERS; i++) {
            if (i < RetainedPins.SLOTS) {
                retain(one, i);
            }
            buffers[i] = read(one, i); // four of them through retained pins
        }
        assertThrows(NoFreeBufferException.class, () -> f.readVersion(other, MAIN, 30));
        one.release(buffers[2]); // idle now
        assertEquals(0, f.readVersion(other, MAIN, 30));
        for (int i = 0; i < NBUFFERS; i++) {
            if (i != 2) {
                assertEquals(i, f.pool.block(buffers[i]));
                one.release(buffers[i]);
            }
        }
    }

    @Test
    void aPageWithAnIdlePinIsThrownAwayAndItsOwnerSeesTheNextPage() {
        for (DropStrategy strategy : DropStrategy.values()) {
            close();
            open(BufferPoolOptions.of(NBUFFERS).withStrategy(strategy));
            int buffer = retain(one, 3);
            retain(two, 4);
            f.pool.dropRelationForks(r, new ForkNumber[] {MAIN}, new int[] {3}, 1);
            assertEquals(0, count(buffer));
            assertEquals(List.of(), held(3));
            retain(one, 0);
            f.pool.dropRelations(new SmgrRelation[] {r}, 1);
            assertEquals(List.of(), held(0));
            retain(one, 0);
            f.pool.dropDatabase(PoolFixture.DB);
            assertEquals(List.of(), held(0));
            int again = read(one, 3);
            assertEquals(3, f.pool.block(again));
            one.release(again);
            f.pool.dropRelations(new SmgrRelation[] {r}, 1);
        }
    }

    private List<Integer> held(int firstBlock) {
        return PoolInspection.descriptors(f.pool).stream()
                .map(PoolInspection.Descriptor::block)
                .filter(block -> block >= firstBlock)
                .toList();
    }

    @Test
    void aCleanupLockIsHadAtOnceBesideIdlePins() {
        int buffer = read(two, 3);
        retain(one, 3);
        assertTrue(two.tryLockForCleanup(buffer));
        two.unlock(buffer);
        retain(one, 3);
        two.lockForCleanup(buffer);
        two.unlock(buffer);
        two.lockExclusive(buffer);
        retain(one, 3);
        assertTrue(two.isCleanupOk(buffer));
        assertEquals(buffer, read(one, 3));
        assertFalse(two.isCleanupOk(buffer), "beside a pin in use");
        two.unlock(buffer);
        assertFalse(two.tryLockForCleanup(buffer));
        one.release(buffer);
        two.release(buffer);
        int locked = two.read(r, MAIN, 3, ReadMode.ZERO_AND_CLEANUP_LOCK);
        assertEquals(buffer, locked);
        two.unlock(buffer);
        two.release(buffer);
    }

    @Test
    void whoHasAnIdlePinHimselfGetsTheCleanupLock() {
        int buffer = retain(one, 3);
        assertEquals(buffer, one.read(r, MAIN, 3, ReadMode.ZERO_AND_CLEANUP_LOCK));
        assertEquals(1, f.refcount(buffer));
        one.unlock(buffer);
        one.release(buffer);
        retain(one, 3);
        assertEquals(buffer, one.read(r, MAIN, 3, ReadMode.ZERO_AND_LOCK));
        assertEquals(1, count(buffer), "counted twice");
        one.unlock(buffer);
        one.release(buffer);
    }

    @Test
    void aReleaseOfARetainedPinWakesTheCleanupWaiter() throws Exception {
        int buffer = retain(one, 3);
        assertEquals(buffer, read(one, 3));
        CountDownLatch ended = new CountDownLatch(1);
        FutureTask<Integer> cleaner =
                JustDirtiedTest.start(
                        () -> {
                            int mine = read(two, 3);
                            two.lockForCleanup(mine);
                            int count = count(mine);
                            two.unlock(mine);
                            two.release(mine);
                            ended.countDown();
                            return count;
                        });
        while ((f.pool.descriptors.state(buffer) & BufferState.PIN_COUNT_WAITER) == 0) {
            Thread.onSpinWait();
        }
        assertEquals(1, ended.getCount());
        one.release(buffer); // back into its slot, and from there into the waiter's hands
        assertEquals(1, cleaner.get());
    }

    @Test
    void adoptedPinsOfARetainedPageCountOnce() {
        int buffer = retain(one, 3);
        assertEquals(buffer, f.pool.read(r, MAIN, 3, ReadMode.NORMAL));
        one.adopt(buffer);
        assertEquals(1, count(buffer));
        one.release(buffer);
        retain(one, 5);
        int[] buffers = new int[4];
        assertEquals(4, one.readMany(r, MAIN, 2, 4, ReadMode.NORMAL, null, buffers));
        for (int taken : buffers) {
            assertEquals(1, count(taken));
            assertEquals(1, one.pins(taken));
            one.release(taken);
        }
    }

    @Test
    void idlePinsShowNowhere() {
        int buffer = retain(one, 3);
        assertEquals(0, f.pool.pinnedBuffers());
        assertEquals(0, one.pinnedBuffers());
        assertEquals(0, f.pool.snapshot().summary().pinned());
        int[] pins = {-1};
        f.pool.snapshot()
                .forEach(
                        (b, spc, db, rel, fork, block, dirty, uses, pinned) -> {
                            if (b == buffer) {
                                pins[0] = pinned;
                            }
                        });
        assertEquals(0, pins[0]);
        assertEquals(buffer, read(one, 3));
        assertEquals(1, f.pool.pinnedBuffers());
        one.release(buffer);
    }

    @Test
    void aBackendThatEndsAfterItsPoolDoesNoHarm() {
        retain(one, 3);
        retain(two, 4);
        f.pool.close();
        one.close();
        two.close();
        f.smgr.close();
        open(); // for the checks at the end
    }

    @Test
    void aBackendThatEndsGivesItsIdlePinsBackAndLeavesTheOthers() {
        List<BackendBuffers> backends = new ArrayList<>();
        int[] buffers = new int[5];
        for (int i = 0; i < 5; i++) {
            backends.add(f.pool.backend("b" + i, leaks::add));
            buffers[i] = retain(backends.get(i), i);
        }
        for (int i : new int[] {2, 0, 4, 1, 3}) { // the middle, either end
            backends.get(i).close();
            assertEquals(0, count(buffers[i]));
            buffers[i] = -1;
            for (int buffer : buffers) {
                assertEquals(1, buffer < 0 ? 1 : f.pool.retention.slots(buffer), "forgotten");
            }
        }
    }

    @Test
    void aRetainedPageIsUsedWithoutAllocation() {
        int buffer = retain(one, 3);
        AllocationTest.assertAllocatesNothing(
                "retained pin",
                () -> {
                    for (int i = 0; i < 20_000; i++) {
                        one.release(read(one, 3));
                        if (i % 100 == 0) {
                            f.pool.retention.takeBack(buffer);
                            f.pool.retention.met(buffer);
                        }
                    }
                });
    }
}
