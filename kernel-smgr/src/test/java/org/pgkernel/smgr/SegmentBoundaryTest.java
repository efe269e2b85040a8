package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;

/** Segments: growth, truncation, inactive ones, removal. */
class SegmentBoundaryTest {
    @TempDir Path directory;

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    @DisplayName("C06 truncated segments stay as empty files and count as absent, for every handle")
    void c06TruncationAcrossSegments(SizePolicy policy) throws IOException {
        try (Fixture f = new Fixture(directory, policy);
                StorageManager second =
                        new StorageManager(
                                f.disk,
                                directory.toString(),
                                Fixture.SEGMENT,
                                SizePolicy.RECOVERY_ONLY,
                                f.requests,
                                10)) {
            SmgrRelation first = f.filled(100, 20);
            SmgrRelation other = second.open(Fixture.SPC, Fixture.DB, 100);
            assertEquals(20, other.nblocks(Fixture.MAIN));
            assertEquals(17, f.read(other, Fixture.MAIN, 17));

            first.truncate(Fixture.MAIN, 8);
            assertBothSee(f, first, other, 8);
            assertEquals(0, f.fileBlocks("100.1"));
            assertEquals(0, f.fileBlocks("100.2"));

            f.extend(other, Fixture.MAIN, 8, 88);
            first.forgetSizes();
            assertBothSee(f, first, other, 9);
            assertEquals(88, f.read(first, Fixture.MAIN, 8));
            assertEquals(1, f.fileBlocks("100.1"), "growth reuses the zero-length file");

            first.truncate(Fixture.MAIN, 3);
            assertBothSee(f, first, other, 3);
            assertEquals(3, f.fileBlocks("100"));
            assertEquals(0, f.fileBlocks("100.1"));
            assertEquals(0, f.fileBlocks("100.2"));
        }
        assertEquals(0, Fixture.descriptors(directory), "no file handle leaks");
    }

    private static void assertBothSee(
            Fixture f, SmgrRelation first, SmgrRelation other, int blocks) {
        assertEquals(blocks, first.nblocks(Fixture.MAIN));
        for (SmgrRelation handle : new SmgrRelation[] {first, other}) {
            DamagedDataException e =
                    assertThrows(
                            DamagedDataException.class, () -> f.read(handle, Fixture.MAIN, 17));
            assertTrue(
                    e.getMessage().contains("rel=1663/5/100 fork=main block=17"), e.getMessage());
        }
        assertEquals(blocks, other.nblocks(Fixture.MAIN));
        assertThrows(
                DamagedDataException.class,
                () -> f.read(other, Fixture.MAIN, 17),
                "after asking the size, too");
    }

    @Test
    @DisplayName(
            "C06 a drop outside redo keeps the first segment, empty, until the next checkpoint and removes all others")
    void c06DropOutsideRedo() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            SmgrRelation relation = f.filled(100, 20);
            relation.create(org.pgkernel.base.ForkNumber.FSM, false);
            relation.zeroExtend(org.pgkernel.base.ForkNumber.FSM, 0, 10, false);
            relation.truncate(Fixture.MAIN, 3);
            int before = Fixture.descriptors(directory);
            assertTrue(before > 0);

            f.manager.unlinkAll(new SmgrRelation[] {relation}, 1, false);

            assertEquals(0, Fixture.descriptors(directory));
            assertEquals(0, f.fileBlocks("100"));
            for (String gone : new String[] {"100.1", "100.2", "100_fsm", "100_fsm.1", "100_vm"}) {
                assertFalse(Files.exists(f.file(gone)), gone);
            }
            assertTrue(
                    f.relation(100).exists(Fixture.MAIN), "the kept file still blocks the number");
            f.checkpoint();
            assertFalse(Files.exists(f.file("100")));
            assertFalse(f.relation(100).exists(Fixture.MAIN));
            assertEquals(0, f.requests.pendingUnlinks());
        }
    }

    @Test
    @DisplayName("C06 a drop in redo removes every segment at once, zero-length ones too")
    void c06DropInRedo() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            f.manager.inRecovery(true);
            SmgrRelation relation = f.filled(100, 20);
            relation.truncate(Fixture.MAIN, 3);
            f.manager.unlinkAll(new SmgrRelation[] {relation}, 1, true);
            for (String gone : new String[] {"100", "100.1", "100.2"}) {
                assertFalse(Files.exists(f.file(gone)), gone);
            }
            assertEquals(0, f.requests.pending());
            assertEquals(0, f.requests.pendingUnlinks());
            assertEquals(0, Fixture.descriptors(directory));
            // Dropping what is gone already is fine.
            f.manager.unlinkAll(new SmgrRelation[] {relation, f.relation(101)}, 2, true);
        }
    }

    @Test
    @DisplayName("C06 a real-size segment: a sparse 1 GiB file")
    void c06RealSegmentSize() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY);
                StorageManager real =
                        new StorageManager(
                                f.disk,
                                directory.toString(),
                                StorageManager.SEGMENT_BLOCKS,
                                SizePolicy.RECOVERY_ONLY,
                                f.requests)) {
            SmgrRelation relation = real.open(Fixture.SPC, Fixture.DB, 100);
            relation.create(Fixture.MAIN, false);
            try (RandomAccessFile file = new RandomAccessFile(f.file("100").toFile(), "rw")) {
                file.setLength((long) StorageManager.SEGMENT_BLOCKS * Fixture.PAGE - Fixture.PAGE);
            }
            int end = StorageManager.SEGMENT_BLOCKS;
            assertEquals(end - 1, relation.nblocks(Fixture.MAIN));
            f.extend(relation, Fixture.MAIN, end - 1, 7);
            assertEquals(end, relation.nblocks(Fixture.MAIN));
            assertEquals(-1, f.fileBlocks("100.1"), "a full last segment makes no next one");
            f.extend(relation, Fixture.MAIN, end, 8);
            f.extend(relation, Fixture.MAIN, end + 1, 9);
            assertEquals(end + 2, relation.nblocks(Fixture.MAIN));
            assertEquals(2, f.fileBlocks("100.1"));
            assertEquals(7, f.read(relation, Fixture.MAIN, end - 1));
            assertEquals(8, f.read(relation, Fixture.MAIN, end));

            relation.truncate(Fixture.MAIN, end);
            assertEquals(end, relation.nblocks(Fixture.MAIN));
            assertThrows(DamagedDataException.class, () -> f.read(relation, Fixture.MAIN, end));
            relation.truncate(Fixture.MAIN, 5);
            assertEquals(5, relation.nblocks(Fixture.MAIN));
            assertEquals(0, f.fileBlocks("100.1"));
            f.extend(relation, Fixture.MAIN, 5, 55);
            real.unlinkAll(new SmgrRelation[] {relation}, 1, true);
            assertEquals(-1, f.fileBlocks("100.1"));
            assertEquals(-1, f.fileBlocks("100"));
        }
    }

    @Test
    void extensionBeyondTheEndFillsLowerSegments() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.SHARED)) {
            SmgrRelation relation = f.filled(100, 3);
            f.extend(relation, Fixture.MAIN, 17, 17);
            assertEquals(18, relation.nblocks(Fixture.MAIN));
            assertEquals(18, ForkSize.blocks(relation.rememberedSize(Fixture.MAIN)));
            assertEquals(8, f.fileBlocks("100"));
            assertEquals(8, f.fileBlocks("100.1"));
            assertEquals(0, f.read(relation, Fixture.MAIN, 9));
            assertEquals(17, f.read(relation, Fixture.MAIN, 17));
        }
    }

    @Test
    void zeroExtensionCrossesSegments() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.SHARED)) {
            SmgrRelation relation = f.filled(100, 3);
            relation.zeroExtend(Fixture.MAIN, 3, 200, false);
            assertEquals(203, relation.nblocks(Fixture.MAIN));
            relation.forgetSizes();
            assertEquals(203, relation.nblocks(Fixture.MAIN));
            assertEquals(0, f.read(relation, Fixture.MAIN, 202));
            assertEquals(26, f.requests.pending(), "one sync for each segment touched");
        }
    }

    @Test
    void aSegmentTooLongIsDamage() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            Files.write(f.file("100"), new byte[9 * Fixture.PAGE]);
            assertThrows(DamagedDataException.class, () -> f.relation(100).nblocks(Fixture.MAIN));
        }
    }

    @Test
    void aMissingFileIsNamed() {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            DiskException e =
                    assertThrows(DiskException.class, () -> f.relation(100).nblocks(Fixture.MAIN));
            assertEquals(DiskException.ENOENT, e.errno());
            assertTrue(e.getMessage().contains("rel=1663/5/100 fork=main"), e.getMessage());
            assertFalse(f.relation(100).exists(Fixture.MAIN));
        }
    }
}
