package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.disk.NativeMemory;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.smgr.PausingDisk.At;
import org.pgkernel.smgr.PausingDisk.Pause;

/**
 * SMGR-4, one interleaving after the other: each test stops a change of a file half-way, lets
 * others come in, and looks whether a wrong size stays behind.
 */
@Timeout(60)
class SizeInterleavingTest {
    @TempDir Path directory;

    private final PausingDisk disk = new PausingDisk(new PosixDisk());
    private final List<Thread> threads = new ArrayList<>();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final long page = NativeMemory.reserve(Fixture.PAGE);

    @AfterEach
    void release() {
        NativeMemory.release(page, Fixture.PAGE);
    }

    private Fixture fixture(SizePolicy policy) {
        return new Fixture(directory, policy, disk, 100);
    }

    /** Runs the step in a thread of its own. */
    private Thread start(Runnable step) {
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                step.run();
                            } catch (Throwable e) {
                                failure.compareAndSet(null, e);
                            }
                        });
        threads.add(thread);
        thread.start();
        return thread;
    }

    /** Returns when the thread has come to its end or waits for a lock, so cannot go on. */
    private static void awaitDoneOrBlocked(Thread thread) {
        while (thread.getState() != Thread.State.BLOCKED
                && thread.getState() != Thread.State.TERMINATED) {
            Thread.onSpinWait();
        }
    }

    private void join() throws InterruptedException {
        for (Thread thread : threads) {
            thread.join();
        }
        if (failure.get() != null) {
            throw new AssertionError(failure.get());
        }
    }

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    void aSizeSeenBeforeAWritePastTheEndIsNotKeptAfterIt(SizePolicy policy) throws Exception {
        try (Fixture f = fixture(policy)) {
            f.manager.inRecovery(true);
            SmgrRelation relation = f.filled(100, 2);
            relation.forgetSizes();
            Pause seen = disk.pause(At.AFTER_SIZE);
            start(() -> relation.nblocks(Fixture.MAIN));
            seen.awaitReached();
            Pause written = disk.pause(At.AFTER_WRITE);
            Thread writer = start(() -> relation.write(Fixture.MAIN, 5, page, false));
            written.awaitReached();
            written.release();
            awaitDoneOrBlocked(writer);
            seen.release();
            join();
            assertEquals(6, relation.nblocks(Fixture.MAIN));
            assertEquals(ForkSize.accurate(6), relation.rememberedSize(Fixture.MAIN));
        }
    }

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    void anExtensionUnderWayWhenItsHandleIsClosedCountsForTheNextOne(SizePolicy policy)
            throws Exception {
        try (Fixture f = fixture(policy)) {
            f.manager.inRecovery(true);
            SmgrRelation old = f.filled(100, 2);
            old.nblocks(Fixture.MAIN);
            Pause writing = disk.pause(At.BEFORE_WRITE);
            start(() -> old.extend(Fixture.MAIN, 2, page, false));
            writing.awaitReached();
            Thread closer = start(() -> f.manager.close(old));
            awaitDoneOrBlocked(closer);
            Thread asker = start(() -> f.relation(100).nblocks(Fixture.MAIN));
            awaitDoneOrBlocked(asker);
            writing.release();
            join();
            assertEquals(3, f.fileBlocks("100"));
            assertEquals(3, f.relation(100).nblocks(Fixture.MAIN));
        }
    }

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    void aWritePastTheEndUnderWayWhenItsHandleIsClosedCountsForTheNextOne(SizePolicy policy)
            throws Exception {
        try (Fixture f = fixture(policy)) {
            f.manager.inRecovery(true);
            SmgrRelation old = f.filled(100, 2);
            old.nblocks(Fixture.MAIN);
            Pause writing = disk.pause(At.BEFORE_WRITE);
            start(() -> old.write(Fixture.MAIN, 5, page, false));
            writing.awaitReached();
            f.manager.close(old);
            assertEquals(2, f.relation(100).nblocks(Fixture.MAIN));
            writing.release();
            join();
            assertEquals(6, f.relation(100).nblocks(Fixture.MAIN));
        }
    }

    @Test
    void whoAsksDuringAnExtensionGetsTheOldSizeAndNobodyTheNewOneBeforeTheBlockIsThere()
            throws Exception {
        try (Fixture f = fixture(SizePolicy.SHARED)) {
            SmgrRelation relation = f.filled(100, 2);
            Pause writing = disk.pause(At.BEFORE_WRITE);
            start(() -> relation.extend(Fixture.MAIN, 2, page, false));
            writing.awaitReached();
            assertEquals(ForkSize.accurate(2), relation.rememberedSize(Fixture.MAIN));
            assertEquals(2, relation.nblocks(Fixture.MAIN));
            writing.release();
            join();
            assertEquals(ForkSize.accurate(3), relation.rememberedSize(Fixture.MAIN));
        }
    }

    @Test
    void twoExtensionsAtOnceAddUp() throws Exception {
        try (Fixture f = fixture(SizePolicy.SHARED)) {
            SmgrRelation relation = f.filled(100, 2);
            Pause first = disk.pause(At.AFTER_WRITE);
            start(() -> relation.extend(Fixture.MAIN, 2, page, false));
            first.awaitReached();
            Thread second = start(() -> relation.extend(Fixture.MAIN, 3, page, false));
            awaitDoneOrBlocked(second);
            first.release();
            join();
            assertEquals(ForkSize.accurate(4), relation.rememberedSize(Fixture.MAIN));
            assertEquals(4, f.fileBlocks("100"));
        }
    }

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    void duringATruncationTheSizeIsUnknownAndWhoAsksWaits(SizePolicy policy) throws Exception {
        try (Fixture f = fixture(policy)) {
            SmgrRelation relation = f.filled(100, 20);
            relation.nblocks(Fixture.MAIN);
            Pause cutting = disk.pause(At.BEFORE_TRUNCATE);
            start(() -> relation.truncate(Fixture.MAIN, 3));
            cutting.awaitReached();
            assertEquals(ForkSize.UNKNOWN, relation.rememberedSize(Fixture.MAIN));
            AtomicInteger answer = new AtomicInteger();
            Thread asker = start(() -> answer.set(relation.nblocks(Fixture.MAIN)));
            awaitDoneOrBlocked(asker);
            cutting.release();
            join();
            assertEquals(3, answer.get());
            assertEquals(
                    policy == SizePolicy.SHARED ? ForkSize.accurate(3) : ForkSize.hint(3),
                    relation.rememberedSize(Fixture.MAIN));
        }
    }

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    void aTruncationThatFailsHalfWayLeavesNoSizeBehind(SizePolicy policy) throws Exception {
        try (Fixture f = fixture(policy)) {
            f.manager.inRecovery(policy == SizePolicy.RECOVERY_ONLY);
            SmgrRelation relation = f.filled(100, 20);
            relation.nblocks(Fixture.MAIN);
            disk.once(
                    At.AFTER_TRUNCATE,
                    () ->
                            disk.once(
                                    At.BEFORE_TRUNCATE,
                                    () -> {
                                        throw new DiskException("told to fail", "100.1", 5);
                                    }));
            assertThrows(DiskException.class, () -> relation.truncate(Fixture.MAIN, 3));
            assertEquals(ForkSize.UNKNOWN, relation.rememberedSize(Fixture.MAIN));
            assertEquals(16, relation.nblocks(Fixture.MAIN), "the last segment went");
            relation.truncate(Fixture.MAIN, 3);
            assertEquals(3, relation.nblocks(Fixture.MAIN));
        }
    }

    @Test
    @DisplayName("C11 a number asked for while its kept file is removed is free afterwards")
    void aKeptFileThatIsRemovedIsNotRememberedAsThere() throws IOException {
        try (Fixture f = fixture(SizePolicy.SHARED)) {
            f.manager.unlinkAll(new SmgrRelation[] {f.filled(100, 3)}, 1, false);
            disk.once(
                    At.BEFORE_UNLINK,
                    () -> assertTrue(f.relation(100).exists(Fixture.MAIN), "not removed yet"));
            f.checkpoint();
            assertEquals(-1, f.fileBlocks("100"));
            assertFalse(f.relation(100).exists(Fixture.MAIN));
            f.relation(100).create(Fixture.MAIN, true);
            assertEquals(0, f.fileBlocks("100"));
        }
    }

    @Test
    void aRelationMadeAnewBeginsEmpty() throws IOException {
        try (Fixture f = fixture(SizePolicy.SHARED)) {
            SmgrRelation first = f.filled(100, 20);
            f.manager.unlinkAll(new SmgrRelation[] {first}, 1, false);
            assertEquals(0, first.nblocks(Fixture.MAIN), "kept, empty");
            f.checkpoint();
            assertThrows(DiskException.class, () -> first.nblocks(Fixture.MAIN));
            SmgrRelation second = f.filled(100, 1);
            assertEquals(ForkSize.accurate(1), first.rememberedSize(Fixture.MAIN));
            f.manager.close(second);
            assertEquals(ForkSize.UNKNOWN, f.relation(100).rememberedSize(Fixture.MAIN));
            assertEquals(1, first.nblocks(Fixture.MAIN));
        }
    }

    @Test
    void aHintOfTheTimeBeforeRecoveryIsNoProofInRecovery() {
        try (Fixture f = fixture(SizePolicy.RECOVERY_ONLY)) {
            RememberedSize size = new RememberedSize();
            size.is(4, f.manager.sizesAccurate());
            // As when recovery began after the word was read, or before it was written.
            f.manager.inRecovery(true);
            assertEquals(ForkSize.hint(4), size.answer(f.manager));
            size.is(4, f.manager.sizesAccurate());
            assertEquals(ForkSize.accurate(4), size.answer(f.manager));
            f.manager.inRecovery(false);
            assertEquals(ForkSize.hint(4), size.answer(f.manager));
        }
    }
}
