package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.smgr.SmgrRelation;

/** BUF-16: a clean page that a hint makes dirty was logged whole since the last redo pointer. */
@Timeout(30)
class HintBitsTest {
    @TempDir Path directory;

    PoolFixture f;
    SmgrRelation r;
    int buffer;
    final RecordingHintLog log = new RecordingHintLog();

    @BeforeEach
    void open() {
        open("checksums", true);
    }

    private void open(String name, boolean checksums) {
        f =
                new PoolFixture(directory.resolve(name), false)
                        .pool(16, checksums, DropStrategy.FULL_SCAN);
        f.pool.hintImageLog(log);
        r = f.create(1, ForkNumber.MAIN, 3);
        buffer = f.pool.read(r, ForkNumber.MAIN, 1, ReadMode.NORMAL);
        f.pool.lockShared(buffer);
    }

    @AfterEach
    void close() {
        f.pool.unlock(buffer);
        f.pool.release(buffer);
        PoolInspection.check(f.pool);
        f.close();
    }

    @Test
    void firstHintOnACleanPageIsLoggedBetweenDelayAndAllow() {
        hint(7, true);
        assertEquals(List.of("delay", "image", "allow"), log.events);
        RecordingHintLog.Image image = log.images.getFirst();
        assertTrue(image.place().endsWith("rel=1663/5/1 fork=main block=1"), image.place());
        assertTrue(image.standard());
        assertEquals(7, new UnsafeBuffer(image.page()).getInt(4104), "the image has the hint");
        assertEquals(0, Page.lsn(new UnsafeBuffer(image.page())), "the image has the old LSN");
        assertTrue(isDirty());
        assertEquals(image.lsn(), f.pool.pageLsn(buffer));
    }

    @Test
    void pageThatIsDirtyAlreadyIsNotLoggedAgain() {
        hint(7, true);
        hint(8, true);
        assertEquals(1, log.images.size());
        assertEquals(log.images.getFirst().lsn(), f.pool.pageLsn(buffer));
    }

    /** The writer has told the gate the LSN it saw; the page must not go out with a later one. */
    @Test
    void aHintWhileThePageIsWrittenLeavesItsLsn() {
        hint(7, true);
        long lsn = f.pool.pageLsn(buffer);
        log.redoPointer = lsn + 1;
        f.disk.beforeWrite = (path, offset) -> hint(8, true);
        f.pool.flushOne(buffer);
        f.disk.beforeWrite = (path, offset) -> {};
        assertEquals(2, log.images.size());
        assertEquals(lsn, f.pool.pageLsn(buffer));
        assertTrue(isDirty(), "the hint came after the copy");
    }

    @Test
    void pageLoggedSinceTheRedoPointerIsMadeDirtyWithoutAnImage() {
        Page.setLsn(f.page(buffer), log.redoPointer + 1);
        hint(7, false);
        assertEquals(List.of("delay", "allow"), log.events);
        assertTrue(isDirty());
        assertEquals(log.redoPointer + 1, f.pool.pageLsn(buffer));
        f.pool.flushOne(buffer);
        log.redoPointer++; // a checkpoint later: the page's LSN is not past it any more
        hint(8, false);
        assertEquals(1, log.images.size());
        assertFalse(log.images.getFirst().standard());
    }

    @Test
    void lsnsAreComparedUnsigned() {
        log.redoPointer = Long.MAX_VALUE;
        Page.setLsn(f.page(buffer), Long.MIN_VALUE);
        hint(7, true);
        assertTrue(log.images.isEmpty());
    }

    @Test
    void hintsAreNotLoggedWithoutChecksumsAndWalLogHints() {
        reopenPlain();
        hint(7, true);
        assertEquals(List.of(), log.events);
        assertTrue(isDirty());
        f.pool.flushOne(buffer);
        f.pool.hintsAreLogged(true);
        hint(8, true);
        assertEquals(1, log.images.size());
    }

    @Test
    void inRecoveryTheHintIsSetButThePageStaysClean() {
        f.smgr.inRecovery(true);
        hint(7, true);
        f.smgr.inRecovery(false);
        assertEquals(List.of(), log.events);
        assertFalse(isDirty());
        assertEquals(7, f.version(buffer));
    }

    @Test
    void withoutALogThePageStaysClean() {
        f.pool.hintImageLog(HintImageLog.NONE);
        hint(7, true);
        assertFalse(isDirty());
        assertEquals(7, f.version(buffer));
    }

    @Test
    void imageThatCannotBeLoggedLeavesThePageCleanAndCheckpointsAllowed() {
        log.whileLogging =
                () -> {
                    throw new DiskException("planted", DiskException.ENOSPC);
                };
        assertThrows(DiskException.class, () -> hint(7, true));
        assertEquals(List.of("delay", "allow"), log.events);
        assertFalse(isDirty());
    }

    @Test
    void pageCannotBeWrittenBeforeItsImageIsLogged() {
        log.whileLogging = () -> assertEquals(0, f.pool.flushAll(), "dirty before it is logged");
        hint(7, true);
        log.whileLogging = () -> {};
        assertTrue(isDirty());
        assertEquals(1, f.pool.flushAll());
        assertEquals(7, f.versionOnDisk(r, ForkNumber.MAIN, 1));
    }

    @Test
    void gateIsAskedForTheImagesLsnBeforeThePageIsWritten() {
        f.pool.unlock(buffer);
        f.pool.release(buffer);
        f.close();
        long[] asked = {-1};
        f =
                new PoolFixture(directory.resolve("checksums"), false)
                        .pool(16, true, DropStrategy.FULL_SCAN, lsn -> asked[0] = lsn);
        f.pool.hintImageLog(log);
        r = f.relation(1);
        buffer = f.pool.read(r, ForkNumber.MAIN, 1, ReadMode.NORMAL);
        f.pool.lockShared(buffer);
        hint(7, true);
        f.pool.flushOne(buffer);
        assertEquals(log.images.getFirst().lsn(), asked[0]);
    }

    /**
     * The image is a private copy: what another sets meanwhile under its shared lock is not torn.
     */
    @Test
    void twoFirstHintsAtOnceKeepTheLsnOfWhoeverDirtiedThePage() throws Exception {
        CountDownLatch both = new CountDownLatch(2);
        log.whileLogging =
                () -> {
                    both.countDown();
                    ReadAndExtendTest.await(both);
                };
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread other =
                new Thread(
                        () -> {
                            try {
                                int b = f.pool.read(r, ForkNumber.MAIN, 1, ReadMode.NORMAL);
                                f.pool.lockShared(b);
                                f.page(b).putInt(4108, 9);
                                f.pool.markDirtyHint(b, true);
                                f.pool.unlock(b);
                                f.pool.release(b);
                            } catch (Throwable t) {
                                failure.set(t);
                            }
                        });
        other.start();
        hint(7, true);
        other.join();
        assertNull(failure.get());
        assertEquals(2, log.images.size());
        assertTrue(isDirty());
        long lsn = f.pool.pageLsn(buffer);
        assertTrue(log.images.stream().anyMatch(image -> image.lsn() == lsn), "LSN " + lsn);
    }

    private void reopenPlain() {
        f.pool.unlock(buffer);
        f.pool.release(buffer);
        f.close();
        open("plain", false);
    }

    private void hint(int value, boolean standard) {
        f.page(buffer).putInt(4104, value);
        f.pool.markDirtyHint(buffer, standard);
    }

    private boolean isDirty() {
        return (f.pool.descriptors.state(buffer) & BufferState.DIRTY) != 0;
    }
}
