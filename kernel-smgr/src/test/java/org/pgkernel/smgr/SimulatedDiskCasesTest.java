package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.testkit.DiskCall;
import org.pgkernel.testkit.Fault;
import org.pgkernel.testkit.Fault.Effect;
import org.pgkernel.testkit.FaultyDisk;
import org.pgkernel.testkit.SimulatedDisk;

/**
 * The storage manager's field cases on a disk that loses what was not synced and drops pages whose
 * sync failed.
 */
class SimulatedDiskCasesTest {
    private final SimulatedDisk disk = Fixture.simulated(1);
    private final List<Fixture> fixtures = new ArrayList<>();

    @AfterEach
    void close() {
        for (Fixture fixture : fixtures) {
            try {
                fixture.close();
            } catch (KernelStoppedException e) {
                // Some of them are stopped.
            }
        }
    }

    private Fixture open(Disk on, SizePolicy policy, int maxOpenFiles) {
        Fixture fixture = new Fixture(on, policy, maxOpenFiles);
        fixtures.add(fixture);
        return fixture;
    }

    private Fixture open(Disk on) {
        return open(on, SizePolicy.RECOVERY_ONLY, 100);
    }

    /** After a crash that loses all that was not synced. */
    private Fixture reopened() {
        return open(disk.found(SimulatedDisk.LOSE_ALL));
    }

    private String file(String name) {
        return Fixture.DATA + "/base/" + Fixture.DB + "/" + name;
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    @DisplayName("C07 run 1: the cut of three segments to one is durable after the sync phase")
    void c07TruncatedAwayStaysAway(boolean standby) {
        Fixture f = open(disk);
        f.manager.inRecovery(standby);
        SmgrRelation relation = f.filled(100, 20);
        f.checkpoint();
        for (int block = 0; block < 20; block++) {
            f.write(relation, Fixture.MAIN, block, 0x40 + block);
        }
        relation.truncate(Fixture.MAIN, 4);
        assertEquals(3, f.requests.process(), "the empty ones by name");
        Fixture after = reopened();
        assertEquals(4, after.relation(100).nblocks(Fixture.MAIN));
        assertEquals(0x43, after.read(after.relation(100), Fixture.MAIN, 3));
        assertEquals(0, after.disk.open(file("100.1")).size());
        assertEquals(0, after.disk.open(file("100.2")).size());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    @DisplayName(
            "C07 run 2: a drop before or during the sync phase lets it finish, and the files stay"
                    + " away after the checkpoint")
    void c07DroppedStaysAway(boolean standby) {
        for (boolean during : new boolean[] {false, true}) {
            SimulatedDisk own = disk.copy(2);
            FaultyDisk hooked = new FaultyDisk(own);
            Fixture f = open(hooked);
            f.manager.inRecovery(standby);
            SmgrRelation relation = f.filled(100, 20);
            f.filled(101, 1);
            Runnable drop = () -> f.manager.unlinkAll(new SmgrRelation[] {relation}, 1, standby);
            if (during) {
                hooked.before(
                        FaultyDisk.Call.OPEN,
                        (path, offset) -> {
                            if (path.endsWith("/100.1")) {
                                hooked.clear(FaultyDisk.Call.OPEN);
                                drop.run();
                            }
                        });
            } else {
                drop.run();
            }
            f.checkpoint();
            f.checkpoint();
            f.checkpoint();
            assertEquals(0, f.requests.pending());
            assertEquals(
                    List.of("101"),
                    own.found(SimulatedDisk.LOSE_ALL).list(Fixture.DATA + "/base/5"),
                    "dropped during the sync phase: " + during);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    @DisplayName("C07 run 3: a segment deleted behind the kernel's back stops it, on a standby too")
    void c07VanishedSegmentStops(boolean standby) {
        Fixture f = open(disk);
        f.manager.inRecovery(standby);
        f.filled(100, 20);
        disk.unlink(file("100.1"));
        String message =
                assertThrows(KernelStoppedException.class, f.requests::process).getMessage();
        assertTrue(message.endsWith("vanished: file=" + file("100.1")), message);
        disk.create(file("100.1")).close();
        assertThrows(KernelStoppedException.class, f.requests::process);
    }

    @Test
    @DisplayName(
            "C08 a failed sync whose dirty pages the system dropped: a second one would succeed and"
                    + " lose them; it is never made, and redo writes them again")
    void c08DroppedPages() {
        Fixture f = open(disk.droppedPages(SimulatedDisk.LOSE_ALL));
        SmgrRelation relation = f.filled(100, 2);
        f.checkpoint();
        f.write(relation, Fixture.MAIN, 1, 0x77);
        disk.plan(Fault.at(Effect.EIO, DiskCall.SYNC, 1));
        KernelStoppedException e = assertThrows(KernelStoppedException.class, f.requests::process);
        assertTrue(e.getMessage().endsWith("file=" + file("100")), e.getMessage());
        assertEquals(1, f.read(relation, Fixture.MAIN, 1), "the old page is read from now on");

        long syncs = disk.count(DiskCall.SYNC);
        for (int i = 0; i < 3; i++) {
            assertThrows(KernelStoppedException.class, f.requests::process);
        }
        assertEquals(syncs, disk.count(DiskCall.SYNC), "never tried again");
        try (DiskFile file = disk.open(file("100"))) {
            file.sync();
        }
        assertEquals(1, disk.content(file("100"))[Fixture.PAGE], "what a second try is worth");

        Fixture after = reopened();
        after.manager.inRecovery(true);
        after.write(after.relation(100), Fixture.MAIN, 1, 0x77);
        after.checkpoint();
        SimulatedDisk last = ((SimulatedDisk) after.disk).found(SimulatedDisk.LOSE_ALL);
        assertEquals(0x77, last.content(file("100"))[Fixture.PAGE]);
    }

    @Test
    @DisplayName("C08 an error of close, met while another file is opened, stops the sync phase")
    void c08CloseOfAnEvictedFile() {
        Fixture f = open(disk.droppedPages(SimulatedDisk.LOSE_ALL), SizePolicy.SHARED, 1);
        SmgrRelation first = f.filled(100, 1);
        disk.plan(new Fault(Effect.EIO, DiskCall.CLOSE, 1, file("100")));
        assertThrows(KernelStoppedException.class, () -> f.filled(101, 1));
        assertThrows(KernelStoppedException.class, f.requests::process);
        assertEquals(0, disk.count(DiskCall.SYNC));
        assertEquals(0, f.read(first, Fixture.MAIN, 0));
    }

    @Test
    @DisplayName("C08 a failed sync of a directory stops the sync phase for good")
    void c08DirectorySync() {
        Fixture f = open(disk);
        f.filled(100, 1);
        disk.plan(Fault.at(Effect.EIO, DiskCall.SYNC_DIRECTORY, 1));
        assertThrows(KernelStoppedException.class, f.requests::process);
        assertThrows(KernelStoppedException.class, f.requests::process);
        assertEquals(1, disk.count(DiskCall.SYNC_DIRECTORY));
    }

    @Test
    @DisplayName("C08 an immediate sync that fails, of the file or of its name, stops the kernel")
    void c08ImmediateSync() {
        for (DiskCall call : new DiskCall[] {DiskCall.SYNC, DiskCall.SYNC_DIRECTORY}) {
            SimulatedDisk own = disk.copy(3).plan(Fault.at(Effect.EIO, call, 1));
            Fixture f = open(own);
            SmgrRelation relation = f.filled(100, 1);
            assertThrows(KernelStoppedException.class, () -> relation.immediateSync(Fixture.MAIN));
            assertThrows(KernelStoppedException.class, f.requests::process);
            assertThrows(KernelStoppedException.class, f.requests::process);
            assertEquals(1, own.count(call));
        }
    }

    @Test
    @DisplayName(
            "C08 a close that fails while the sync phase is at work fails it, though its own sync of"
                    + " that file succeeds")
    void c08CloseFailsDuringTheSyncPhase() {
        FaultyDisk hooked = new FaultyDisk(disk.droppedPages(SimulatedDisk.LOSE_ALL));
        Fixture f = open(hooked);
        SmgrRelation relation = f.filled(100, 1);
        disk.plan(Fault.at(Effect.EIO, DiskCall.CLOSE, 1));
        hooked.before(
                FaultyDisk.Call.SYNC,
                (path, offset) -> {
                    hooked.clear(FaultyDisk.Call.SYNC);
                    assertThrows(KernelStoppedException.class, () -> f.manager.close(relation));
                });
        assertThrows(KernelStoppedException.class, f.requests::process);
        assertEquals(0, disk.content(file("100"))[0], "the page is lost");
        assertThrows(KernelStoppedException.class, f.requests::process);
    }

    @Test
    @DisplayName(
            "C08 the sync phase does not tell success while a close, or an immediate sync, that was"
                    + " told of a lost write has not said so yet")
    void c08ReportOnItsWay() throws InterruptedException {
        for (FaultyDisk.Call call :
                new FaultyDisk.Call[] {FaultyDisk.Call.CLOSE, FaultyDisk.Call.SYNC}) {
            FaultyDisk hooked = new FaultyDisk(disk.copy(6));
            Fixture f = open(hooked);
            SmgrRelation relation = f.filled(100, 1);
            CountDownLatch told = new CountDownLatch(1);
            CountDownLatch mayGoOn = new CountDownLatch(1);
            hooked.after(
                    call,
                    (path, offset) -> {
                        hooked.clear(call);
                        told.countDown();
                        await(mayGoOn);
                        throw new DiskException("lost a write", path, DiskException.EIO);
                    });
            Thread reporter =
                    Thread.ofPlatform()
                            .uncaughtExceptionHandler((thread, e) -> {})
                            .start(
                                    call == FaultyDisk.Call.CLOSE
                                            ? () -> f.manager.close(relation)
                                            : () -> relation.immediateSync(Fixture.MAIN));
            await(told);
            AtomicReference<Throwable> end = new AtomicReference<>();
            Thread checkpointer =
                    Thread.ofPlatform()
                            .uncaughtExceptionHandler((thread, e) -> end.set(e))
                            .start(f.requests::process);
            while (checkpointer.isAlive() && checkpointer.getState() != Thread.State.WAITING) {
                Thread.onSpinWait();
            }
            mayGoOn.countDown();
            reporter.join();
            checkpointer.join();
            assertInstanceOf(KernelStoppedException.class, end.get(), "while a " + call);
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    @DisplayName("C08 a new database directory whose name cannot be made durable stops the kernel")
    void c08NewDirectory() {
        SimulatedDisk own =
                disk.copy(7)
                        .directories(Fixture.DATA + "/pg_tblspc/16999/PG_15_202209061")
                        .plan(Fault.at(Effect.EIO, DiskCall.SYNC_DIRECTORY, 1));
        Fixture f = open(own);
        SmgrRelation relation = f.manager.open(16999, 77, 100);
        assertThrows(KernelStoppedException.class, () -> relation.create(Fixture.MAIN, false));
        assertThrows(KernelStoppedException.class, f.requests::process);
    }

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    @DisplayName(
            "C09 extending by 1 and by 8 on a disk with room for 3.5 KiB: whole blocks count, the"
                    + " piece is no page, and the next extension overwrites it; a thousand times")
    void c09NoSpaceHalfWay(SizePolicy policy) {
        Fixture f = open(disk, policy, 100);
        SmgrRelation relation = f.filled(100, 2);
        for (int i = 0; i < 1000; i++) {
            disk.room(3584);
            DiskException e =
                    assertThrows(
                            DiskException.class,
                            i % 2 == 0
                                    ? () -> f.extend(relation, Fixture.MAIN, 2, 2)
                                    : () -> relation.zeroExtend(Fixture.MAIN, 2, 8, false));
            assertEquals(DiskException.ENOSPC, e.errno());
            assertTrue(e.mayRetry());
            assertEquals(2 * Fixture.PAGE + 3584, disk.content(file("100")).length);
            assertEquals(2, relation.nblocks(Fixture.MAIN));
            assertThrows(DamagedDataException.class, () -> f.read(relation, Fixture.MAIN, 2));
            disk.room(Long.MAX_VALUE);
            f.extend(relation, Fixture.MAIN, 2, i);
            assertEquals(3, relation.nblocks(Fixture.MAIN));
            assertEquals(i & 0xFF, f.read(relation, Fixture.MAIN, 2));
            assertEquals(1, f.read(relation, Fixture.MAIN, 1));
            relation.truncate(Fixture.MAIN, 2);
        }
        assertEquals(1, f.manager.openFileCount());
        assertEquals(1, f.requests.pending());
    }

    @Test
    @DisplayName(
            "C09 a short write at any sector, then a crash in any outcome: whole blocks count, and"
                    + " the next extension overwrites the piece")
    void c09ShortWriteAndCrash() {
        for (int seed = 0; seed < 100; seed++) {
            SimulatedDisk own = disk.copy(seed).plan(Fault.at(Effect.SHORT, DiskCall.WRITE, 3));
            Fixture f = open(own);
            SmgrRelation relation = f.filled(100, 2);
            f.checkpoint();
            assertThrows(DiskException.class, () -> f.extend(relation, Fixture.MAIN, 2, 2));
            assertEquals(2, relation.nblocks(Fixture.MAIN), "seed " + seed);
            Fixture after = open(own.found(seed + 2));
            SmgrRelation found = after.relation(100);
            assertEquals(2, found.nblocks(Fixture.MAIN), "seed " + seed);
            after.extend(found, Fixture.MAIN, 2, 0x22);
            assertEquals(3, found.nblocks(Fixture.MAIN), "seed " + seed);
            assertEquals(0x22, after.read(found, Fixture.MAIN, 2));
        }
    }

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    @DisplayName(
            "C10(2), storage half: an unknown size is never taken for 0, by whatever way a fork is"
                    + " extended; what is there stays")
    void c10UnknownIsNotZero(SizePolicy policy) {
        for (boolean recovery : new boolean[] {false, true}) {
            Fixture f = open(disk.copy(1), policy, 100);
            f.manager.inRecovery(recovery);
            SmgrRelation relation = f.filled(100, 5);
            List<Runnable> ways =
                    List.of(
                            () -> f.extend(relation, Fixture.MAIN, 5, 5),
                            () -> relation.zeroExtend(Fixture.MAIN, 6, 3, false),
                            () -> f.extend(relation, Fixture.MAIN, 9, 9),
                            () -> relation.zeroExtend(Fixture.MAIN, 10, 0, false));
            int[] sizes = {6, 9, 10, 10};
            for (int i = 0; i < sizes.length; i++) {
                relation.forgetSizes();
                f.manager.close(relation);
                assertFalse(ForkSize.isKnown(relation.rememberedSize(Fixture.MAIN)));
                ways.get(i).run();
                long remembered = relation.rememberedSize(Fixture.MAIN);
                assertTrue(
                        !ForkSize.isKnown(remembered) || ForkSize.blocks(remembered) == sizes[i],
                        "remembered after way " + i + ": " + remembered);
                assertEquals(sizes[i], relation.nblocks(Fixture.MAIN), "way " + i);
            }
            for (int block = 0; block < 5; block++) {
                assertEquals(block, f.read(relation, Fixture.MAIN, block));
            }
        }
    }

    @Test
    @DisplayName(
            "C10(3), storage half: blocks of zeros take their space before the call returns; a full"
                    + " disk shows there and not at a later write")
    void c10ZeroBlocksTakeSpace() {
        Fixture f = open(disk);
        SmgrRelation relation = f.filled(100, 5);
        disk.room(2 * Fixture.PAGE);
        assertThrows(DiskException.class, () -> relation.zeroExtend(Fixture.MAIN, 5, 3, false));
        assertEquals(7, relation.nblocks(Fixture.MAIN));
        f.write(relation, Fixture.MAIN, 5, 5);
        f.write(relation, Fixture.MAIN, 6, 6);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    @DisplayName(
            "R14 an empty relation exists after a crash past the checkpoint; it would not without"
                    + " the sync of its directory")
    void r14EmptyRelationSurvives(boolean standby) {
        for (boolean synced : new boolean[] {true, false}) {
            SimulatedDisk own = disk.copy(4);
            if (!synced) {
                own.plan(Fault.at(Effect.IGNORED, DiskCall.SYNC_DIRECTORY, 0));
            }
            Fixture f = open(own);
            f.manager.inRecovery(standby);
            f.relation(100).create(Fixture.MAIN, standby);
            f.relation(100).create(ForkNumber.FSM, standby);
            assertEquals(2, f.requests.pending(), "both are registered");
            assertEquals(2, f.checkpoint());
            Fixture after = open(own.found(SimulatedDisk.LOSE_ALL));
            assertEquals(synced, after.relation(100).exists(Fixture.MAIN));
            assertEquals(synced, after.relation(100).exists(ForkNumber.FSM));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    @DisplayName("R14 so does one whose database's directory was new in its tablespace")
    void r14NewDirectorySurvives(boolean standby) {
        SimulatedDisk own =
                disk.copy(5).directories(Fixture.DATA + "/pg_tblspc/16999/PG_15_202209061");
        Fixture f = open(own);
        f.manager.inRecovery(standby);
        f.manager.open(16999, 77, 100).create(Fixture.MAIN, standby);
        f.checkpoint();
        Fixture after = open(own.found(SimulatedDisk.LOSE_ALL));
        assertTrue(after.manager.open(16999, 77, 100).exists(Fixture.MAIN));
    }

    @Test
    @DisplayName("SMGR-10 what a lost cut has left of a higher segment does not come up again")
    void leftoverOfALostCutStaysAway() {
        Fixture f = open(disk);
        SmgrRelation relation = f.filled(100, 12);
        f.checkpoint();
        relation.truncate(Fixture.MAIN, 4);
        try (DiskFile lower = disk.open(file("100"))) {
            lower.sync();
        }
        Fixture after = reopened();
        assertEquals(4 * Fixture.PAGE, after.disk.open(file("100.1")).size(), "the cut is lost");
        SmgrRelation found = after.relation(100);
        assertEquals(4, found.nblocks(Fixture.MAIN));
        for (int block = 4; block < 10; block++) {
            after.extend(found, Fixture.MAIN, block, 0x66);
            assertEquals(block + 1, found.nblocks(Fixture.MAIN));
        }
        assertThrows(DamagedDataException.class, () -> after.read(found, Fixture.MAIN, 10));
    }

    @Test
    void theKeptSegmentIsEmptyShouldItComeBack() {
        Fixture f = open(disk);
        SmgrRelation relation = f.filled(100, 3);
        f.checkpoint();
        f.manager.unlinkAll(new SmgrRelation[] {relation}, 1, false);
        f.checkpoint();
        assertFalse(disk.exists(file("100")));
        assertEquals(0, reopened().relation(100).nblocks(Fixture.MAIN), "its removal is lost");
        f.checkpoint();
        assertFalse(reopened().relation(100).exists(Fixture.MAIN), "the next one saves it");
    }

    @Test
    void redoOfADropRemovesHigherSegmentsThoughTheFirstIsGone() {
        Fixture f = open(disk);
        f.filled(100, 20);
        f.manager.closeAll();
        disk.unlink(file("100"));
        f.manager.inRecovery(true);
        f.manager.unlinkAll(new SmgrRelation[] {f.relation(100)}, 1, true);
        assertEquals(List.of(), disk.list(Fixture.DATA + "/base/5"));
    }
}
