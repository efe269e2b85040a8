package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.testkit.FaultyDisk;
import org.pgkernel.testkit.FaultyDisk.Call;

/** Handles, directories, and the bound on open files. */
class StorageManagerTest {
    @TempDir Path directory;

    @Test
    void everybodyGetsTheSameHandle() {
        try (Fixture f = new Fixture(directory, SizePolicy.SHARED)) {
            assertSame(f.relation(7), f.relation(7));
            assertNotSame(f.relation(7), f.manager.open(Fixture.SPC, 6, 7));
            assertNotSame(f.relation(7), f.manager.open(1664, Fixture.DB, 7));
            SmgrRelation[] many = new SmgrRelation[5000];
            for (int i = 0; i < many.length; i++) {
                many[i] = f.relation(-1 - i);
            }
            for (int i = 0; i < many.length; i += 2) {
                f.manager.close(many[i]);
            }
            for (int i = 0; i < many.length; i++) {
                SmgrRelation now = f.relation(-1 - i);
                assertEquals(i % 2 == 0, now != many[i]);
                assertEquals(-1 - i, now.relNumber());
            }
        }
    }

    @Test
    @DisplayName("SMGR-6 a closed handle passes its calls on to the present one")
    void aClosedHandleStaysUsable() {
        try (Fixture f = new Fixture(directory, SizePolicy.SHARED)) {
            SmgrRelation old = f.filled(100, 3);
            f.manager.close(old);
            assertEquals(ForkSize.UNKNOWN, old.rememberedSize(Fixture.MAIN));
            assertEquals(3, old.nblocks(Fixture.MAIN));
            SmgrRelation present = f.relation(100);
            assertNotSame(old, present);
            assertEquals(ForkSize.accurate(3), present.rememberedSize(Fixture.MAIN));
            f.extend(old, Fixture.MAIN, 3, 3);
            assertEquals(ForkSize.accurate(4), present.rememberedSize(Fixture.MAIN));
            assertEquals(3, f.read(old, Fixture.MAIN, 3));
            assertEquals(1, f.manager.openFileCount());
            f.manager.close(old);
            assertEquals(
                    0, f.manager.openFileCount(), "closing by the old handle closes the relation");
        }
    }

    @Test
    void closingADatabaseLeavesOthersOpen() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.SHARED)) {
            Files.createDirectories(directory.resolve("base/6"));
            SmgrRelation here = f.filled(100, 3);
            SmgrRelation there = f.manager.open(Fixture.SPC, 6, 100);
            there.create(Fixture.MAIN, false);
            f.manager.closeDatabase(Fixture.DB);
            assertNotSame(here, f.relation(100));
            assertSame(there, f.manager.open(Fixture.SPC, 6, 100));
            assertEquals(1, Fixture.descriptors(directory));
            f.manager.closeAll();
            assertEquals(0, Fixture.descriptors(directory));
        }
    }

    @Test
    void creationMakesTheDatabaseDirectory() {
        try (Fixture f = new Fixture(directory, SizePolicy.SHARED)) {
            SmgrRelation relation = f.manager.open(Fixture.SPC, 77, 100);
            relation.create(Fixture.MAIN, false);
            assertTrue(Files.exists(directory.resolve("base/77/100")));
        }
    }

    @Test
    void onlyRedoMakesATablespaceThatIsMissing() {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            SmgrRelation relation = f.manager.open(5000, 77, 100);
            DiskException e =
                    assertThrows(DiskException.class, () -> relation.create(Fixture.MAIN, false));
            assertEquals(DiskException.ENOENT, e.errno());
            f.manager.inRecovery(true);
            relation.create(Fixture.MAIN, true);
            String version = RelFileLocator.TABLESPACE_VERSION_DIRECTORY;
            assertTrue(Files.exists(directory.resolve("pg_tblspc/5000/" + version + "/77/100")));
        }
    }

    @Test
    void anExistingForkIsFineInRedoOnly() {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            SmgrRelation relation = f.filled(100, 3);
            DiskException e =
                    assertThrows(DiskException.class, () -> relation.create(Fixture.MAIN, false));
            assertEquals(DiskException.EEXIST, e.errno());
            assertEquals(3, relation.nblocks(Fixture.MAIN));
            f.manager.inRecovery(true);
            f.manager.closeAll();
            relation.create(Fixture.MAIN, true);
            assertEquals(3, relation.nblocks(Fixture.MAIN), "its blocks are kept");
        }
    }

    @Test
    void existsNoticesAForeignUnlinkOutsideRecovery() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            SmgrRelation relation = f.filled(100, 3);
            Files.delete(f.file("100"));
            assertFalse(relation.exists(Fixture.MAIN));
            f.requests.forgetDatabase(Fixture.DB);
        }
    }

    @Test
    void inRecoveryExistsAsksTheSystemOnce() {
        FaultyDisk disk = new FaultyDisk(new PosixDisk());
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY, disk, 100)) {
            f.manager.inRecovery(true);
            SmgrRelation relation = f.filled(100, 1);
            assertFalse(relation.exists(ForkNumber.FSM));
            int opens = disk.count(Call.OPEN);
            for (int i = 0; i < 10; i++) {
                assertTrue(relation.exists(Fixture.MAIN));
                assertFalse(relation.exists(ForkNumber.FSM));
                relation.create(Fixture.MAIN, true);
                relation.prefetch(ForkNumber.FSM, 3);
            }
            assertEquals(opens, disk.count(Call.OPEN));
            relation.create(ForkNumber.FSM, true);
            assertTrue(relation.exists(ForkNumber.FSM));
        }
    }

    @Test
    @DisplayName("SMGR-5 open files stay below the cap, and a closed one opens again unnoticed")
    void openFilesAreBounded() throws IOException {
        try (Fixture f =
                new Fixture(
                        directory, SizePolicy.SHARED, new org.pgkernel.base.disk.PosixDisk(), 5)) {
            SmgrRelation[] relations = new SmgrRelation[20];
            for (int i = 0; i < relations.length; i++) {
                relations[i] = f.filled(100 + i, 9);
                assertTrue(f.manager.openFileCount() <= 5);
            }
            assertEquals(5, Fixture.descriptors(directory));
            for (int round = 0; round < 3; round++) {
                for (SmgrRelation relation : relations) {
                    assertEquals(8, f.read(relation, Fixture.MAIN, 8));
                    f.write(relation, Fixture.MAIN, 7, 7);
                    relation.startWriteback(Fixture.MAIN, 0, 9);
                    relation.prefetch(Fixture.MAIN, 3);
                }
            }
            assertEquals(5, Fixture.descriptors(directory));
            f.checkpoint();
            f.manager.unlinkAll(relations, relations.length, false);
            assertEquals(0, Fixture.descriptors(directory));
            assertEquals(0, f.manager.openFileCount());
        }
    }

    @Test
    void aFileInUseStaysOpenUntilItIsLetGo() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.SHARED)) {
            OpenFiles files = new OpenFiles(f.disk, 1, f.requests);
            Files.createFile(f.file("a"));
            Files.createFile(f.file("b"));
            SegmentFile first =
                    new SegmentFile(
                            files, f.file("a").toString(), f.disk.open(f.file("a").toString()));
            assertEquals(SegmentFile.PINNED, first.pin());
            SegmentFile second =
                    new SegmentFile(
                            files, f.file("b").toString(), f.disk.open(f.file("b").toString()));
            assertEquals(2, files.count(), "the cap gives way to a pin");
            assertEquals(0, first.file().size());
            first.retire();
            assertEquals(SegmentFile.RETIRED, first.pin());
            assertEquals(0, first.file().size(), "still open");
            assertEquals(2, Fixture.descriptors(directory));
            first.unpin();
            assertEquals(1, Fixture.descriptors(directory));
            second.retire();
            assertEquals(0, Fixture.descriptors(directory));
            assertEquals(0, files.count());
        }
    }

    @Test
    void runningOutOfDescriptorsClosesOthers() {
        FaultyDisk disk = new FaultyDisk(new PosixDisk());
        try (Fixture f = new Fixture(directory, SizePolicy.SHARED, disk, 100)) {
            for (int i = 0; i < 10; i++) {
                f.filled(100 + i, 1);
            }
            disk.before(
                    Call.OPEN,
                    (path, offset) -> {
                        if (f.manager.openFileCount() > 3) {
                            throw new DiskException("could not open file", path, 24);
                        }
                    });
            for (int i = 0; i < 10; i++) {
                f.filled(200 + i, 1);
                assertEquals(0, f.read(f.relation(100 + i), Fixture.MAIN, 0));
            }
            assertTrue(f.manager.openFileCount() <= 4);
        }
    }
}
