package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.testkit.FaultyDisk;
import org.pgkernel.testkit.FaultyDisk.Call;

/** What a checkpoint makes durable, what it passes over, and what stops the kernel. */
class SyncRequestsTest {
    @TempDir Path directory;

    private final FaultyDisk disk = new FaultyDisk(new PosixDisk());
    private final List<String> synced = new ArrayList<>();
    private Fixture f;

    @BeforeEach
    void open() {
        f = new Fixture(directory, SizePolicy.RECOVERY_ONLY, disk, 100);
        disk.before(
                Call.SYNC,
                (path, offset) -> synced.add(directory.relativize(Path.of(path)).toString()));
    }

    @AfterEach
    void close() {
        f.close();
    }

    @Test
    @DisplayName(
            "C07 run 1: segments truncated away before the sync phase are synced by name, empty as"
                    + " they are")
    void c07TruncatedAway() {
        SmgrRelation relation = f.filled(100, 20);
        relation.truncate(Fixture.MAIN, 4);
        assertEquals(3, f.requests.process());
        synced.sort(null);
        assertEquals(List.of("base/5/100", "base/5/100.1", "base/5/100.2"), synced);
        assertEquals(0, f.requests.pending());
    }

    @Test
    @DisplayName("C07 run 2: a relation dropped before the sync phase leaves no request behind")
    void c07Dropped() {
        SmgrRelation relation = f.filled(100, 20);
        f.manager.unlinkAll(new SmgrRelation[] {relation}, 1, true);
        assertEquals(0, f.requests.pending());
        assertEquals(0, f.requests.process());
    }

    @Test
    @DisplayName(
            "C07 run 2: a cancellation that comes after the sync loop reached the relation is found"
                    + " by looking again")
    void c07DroppedInTheMiddle() {
        SmgrRelation relation = f.filled(100, 20);
        f.filled(101, 1);
        disk.before(
                Call.OPEN,
                (path, offset) -> {
                    if (path.endsWith("/100")) {
                        disk.clear(Call.OPEN);
                        f.manager.unlinkAll(new SmgrRelation[] {relation}, 1, true);
                    }
                });
        assertEquals(1, f.requests.process());
        assertEquals(List.of("base/5/101"), synced);
        assertEquals(0, f.requests.pending());
    }

    @Test
    @DisplayName("C07 run 3: a segment deleted behind the kernel's back stops it, for good")
    void c07VanishedFile() throws IOException {
        f.filled(100, 20);
        Files.delete(f.file("100.1"));
        KernelStoppedException e = assertThrows(KernelStoppedException.class, f.requests::process);
        assertTrue(e.getMessage().endsWith("/base/5/100.1"), e.getMessage());
        assertFalse(e.mayRetry());
        Files.createFile(f.file("100.1"));
        assertThrows(KernelStoppedException.class, f.requests::process);
    }

    @Test
    @DisplayName("C08 a failed sync is fatal and never tried again")
    void c08FailedSync() {
        f.filled(100, 1);
        disk.before(
                Call.SYNC,
                (path, offset) -> {
                    disk.clear(Call.SYNC);
                    throw new DiskException("could not sync", path, DiskException.EIO);
                });
        assertThrows(KernelStoppedException.class, f.requests::process);
        int syncs = disk.count(Call.SYNC);
        assertThrows(KernelStoppedException.class, f.requests::process);
        assertEquals(syncs, disk.count(Call.SYNC));
    }

    @Test
    @DisplayName("C08 an error from close counts as a lost write")
    void c08FailedClose() {
        SmgrRelation relation = f.filled(100, 1);
        disk.after(
                Call.CLOSE,
                (path, offset) -> {
                    disk.clear(Call.CLOSE);
                    throw new DiskException("could not close", path, DiskException.EIO);
                });
        assertThrows(KernelStoppedException.class, () -> f.manager.close(relation));
        assertThrows(KernelStoppedException.class, f.requests::process);
    }

    @Test
    @DisplayName("C08 a failed immediate sync stops later checkpoints, too")
    void c08FailedImmediateSync() {
        SmgrRelation relation = f.filled(100, 1);
        disk.before(
                Call.SYNC,
                (path, offset) -> {
                    disk.clear(Call.SYNC);
                    throw new DiskException("could not sync", path, DiskException.EIO);
                });
        assertThrows(KernelStoppedException.class, () -> relation.immediateSync(Fixture.MAIN));
        assertThrows(KernelStoppedException.class, f.requests::process);
    }

    @Test
    @DisplayName(
            "R14 creating an empty relation registers a sync, and its name becomes durable with it")
    void r14EmptyRelation() {
        f.relation(100).create(Fixture.MAIN, false);
        assertEquals(1, f.requests.pending());
        assertEquals(1, f.requests.process());
        assertEquals(List.of("base/5/100"), synced);
        assertEquals(1, disk.count(Call.SYNC_DIRECTORY));
        f.requests.process();
        assertEquals(1, disk.count(Call.SYNC_DIRECTORY));
    }

    @Test
    void requestsOfOneSegmentAreMerged() {
        SmgrRelation relation = f.filled(100, 5);
        for (int i = 0; i < 100; i++) {
            f.write(relation, Fixture.MAIN, i % 5, i);
        }
        assertEquals(1, f.requests.pending());
        assertEquals(1, f.requests.process());
    }

    @Test
    void skippedSyncsAreNotQueued() {
        SmgrRelation relation = f.filled(100, 1);
        f.requests.process();
        relation.write(Fixture.MAIN, 0, f.address, true);
        relation.extend(Fixture.MAIN, 1, f.address, true);
        relation.zeroExtend(Fixture.MAIN, 2, 3, true);
        assertEquals(0, f.requests.pending());
    }

    @Test
    void aWriteDuringTheSyncOfItsFileIsSyncedNextTime() {
        SmgrRelation relation = f.filled(100, 1);
        disk.before(
                Call.SYNC,
                (path, offset) -> {
                    disk.clear(Call.SYNC);
                    f.write(relation, Fixture.MAIN, 0, 9);
                });
        assertEquals(1, f.requests.process());
        assertEquals(1, f.requests.pending());
        assertEquals(1, f.requests.process());
        assertEquals(0, f.requests.pending());
    }

    @Test
    @DisplayName("R12 unlinks queued after a checkpoint began wait for the next one")
    void r12UnlinkCycle() {
        SmgrRelation early = f.filled(100, 1);
        SmgrRelation late = f.filled(101, 1);
        f.manager.unlinkAll(new SmgrRelation[] {early}, 1, false);
        f.requests.preCheckpoint();
        f.manager.unlinkAll(new SmgrRelation[] {late}, 1, false);
        f.requests.process();
        f.requests.postCheckpoint();
        assertFalse(Files.exists(f.file("100")));
        assertTrue(Files.exists(f.file("101")));
        f.checkpoint();
        assertFalse(Files.exists(f.file("101")));
    }

    @Test
    void forgettingADatabaseCancelsSyncsUnlinksAndDirectories() throws IOException {
        Files.createDirectories(directory.resolve("base/6"));
        f.filled(100, 20);
        SmgrRelation dropped = f.filled(101, 1);
        f.manager.unlinkAll(new SmgrRelation[] {dropped}, 1, false);
        f.manager.open(Fixture.SPC, 6, 100).create(Fixture.MAIN, false);
        f.requests.forgetDatabase(Fixture.DB);
        assertEquals(1, f.requests.pending());
        assertEquals(0, f.requests.pendingUnlinks());
        assertEquals(1, f.checkpoint());
        assertEquals(List.of("base/6/100"), synced);
        assertEquals(1, disk.count(Call.SYNC_DIRECTORY));
        assertTrue(Files.exists(f.file("101")));
    }

    @Test
    @DisplayName("C07 forgetting a database while its files are being synced")
    void c07DatabaseDroppedInTheMiddle() {
        f.filled(100, 20);
        disk.before(
                Call.OPEN,
                (path, offset) -> {
                    disk.clear(Call.OPEN);
                    f.manager.closeDatabase(Fixture.DB);
                    f.requests.forgetDatabase(Fixture.DB);
                    try {
                        for (String name : new String[] {"100", "100.1", "100.2"}) {
                            Files.delete(f.file(name));
                        }
                        Files.delete(directory.resolve("base/5"));
                    } catch (IOException e) {
                        throw new java.io.UncheckedIOException(e);
                    }
                });
        assertEquals(0, f.requests.process());
        assertEquals(0, f.requests.pending());
    }

    @Test
    void aFailedUnlinkIsAWarningAndOthersGoOn() {
        SmgrRelation relation = f.filled(100, 20);
        relation.create(ForkNumber.FSM, false);
        disk.before(
                Call.UNLINK,
                (path, offset) -> {
                    if (path.endsWith("/100")) {
                        throw new DiskException("could not remove", path, 13);
                    }
                });
        f.manager.unlinkAll(new SmgrRelation[] {relation, f.filled(101, 1)}, 2, true);
        assertTrue(Files.exists(f.file("100")));
        for (String gone : new String[] {"100.1", "100.2", "100_fsm", "101"}) {
            assertFalse(Files.exists(f.file(gone)), gone);
        }
    }

    @Test
    void immediateSyncCoversInactiveSegmentsFromTheTop() {
        SmgrRelation relation = f.filled(100, 20);
        relation.truncate(Fixture.MAIN, 3);
        synced.clear();
        relation.immediateSync(Fixture.MAIN);
        assertEquals(List.of("base/5/100.2", "base/5/100.1", "base/5/100"), synced);
    }

    @Test
    @DisplayName(
            "A drop in redo costs one unlink for each fork that may exist and one for each fork's"
                    + " next segment, nothing else")
    void dropIsLean() {
        f.manager.inRecovery(true);
        SmgrRelation relation = f.relation(100);
        relation.create(Fixture.MAIN, true);
        relation.create(ForkNumber.FSM, true);
        // The drop of buffers asks so.
        assertFalse(relation.exists(ForkNumber.VISIBILITY_MAP));
        assertFalse(relation.exists(ForkNumber.INIT));
        int opens = disk.count(Call.OPEN);
        int others = disk.count(Call.LOOK);
        f.manager.unlinkAll(new SmgrRelation[] {relation}, 1, true);
        assertEquals(4, disk.count(Call.UNLINK));
        assertEquals(opens, disk.count(Call.OPEN));
        assertEquals(others, disk.count(Call.LOOK));
    }
}
