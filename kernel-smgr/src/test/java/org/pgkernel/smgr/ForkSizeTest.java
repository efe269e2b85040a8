package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.testkit.FaultyDisk;

/** When a remembered size is there, and when it is proof. */
class ForkSizeTest {
    private static final ForkNumber[] FORKS = {
        ForkNumber.MAIN, ForkNumber.FSM, ForkNumber.VISIBILITY_MAP
    };

    @TempDir Path directory;

    @Test
    @DisplayName(
            "C04 in redo a size is unknown until it was asked, fork by fork, and accurate from then"
                    + " on")
    void c04SizesInRedo() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            Files.write(f.file("100"), new byte[3 * Fixture.PAGE]);
            Files.write(f.file("100_fsm"), new byte[3 * Fixture.PAGE]);
            f.manager.inRecovery(true);
            SmgrRelation relation = f.relation(100);
            for (ForkNumber fork : FORKS) {
                assertEquals(ForkSize.UNKNOWN, relation.rememberedSize(fork));
            }
            assertTrue(relation.exists(ForkNumber.MAIN));
            assertTrue(relation.exists(ForkNumber.FSM));
            assertFalse(relation.exists(ForkNumber.VISIBILITY_MAP));
            assertEquals(
                    ForkSize.UNKNOWN,
                    relation.rememberedSize(ForkNumber.MAIN),
                    "existing is not a size");

            assertEquals(3, relation.nblocks(ForkNumber.MAIN));
            assertEquals(ForkSize.accurate(3), relation.rememberedSize(ForkNumber.MAIN));
            assertFalse(
                    ForkSize.isKnown(relation.rememberedSize(ForkNumber.FSM)),
                    "one fork's size says nothing of another's");

            f.extend(relation, ForkNumber.MAIN, 3, 3);
            assertEquals(ForkSize.accurate(4), relation.rememberedSize(ForkNumber.MAIN));
            relation.truncate(ForkNumber.MAIN, 2);
            assertEquals(ForkSize.accurate(2), relation.rememberedSize(ForkNumber.MAIN));
            relation.truncate(ForkNumber.MAIN, 9);
            assertEquals(
                    ForkSize.accurate(2),
                    relation.rememberedSize(ForkNumber.MAIN),
                    "more than there is changes nothing in redo");

            f.manager.inRecovery(false);
            assertEquals(
                    ForkSize.hint(2),
                    relation.rememberedSize(ForkNumber.MAIN),
                    "a hint after redo");
        }
    }

    @Test
    @DisplayName(
            "C04 outside recovery a remembered size is never proof under RECOVERY_ONLY, always"
                    + " under SHARED")
    void c04SizesOutsideRecovery() {
        for (SizePolicy policy : SizePolicy.values()) {
            try (Fixture f = new Fixture(directory.resolve(policy.name()), policy)) {
                SmgrRelation relation = f.filled(100, 4);
                assertEquals(4, relation.nblocks(Fixture.MAIN));
                long size = relation.rememberedSize(Fixture.MAIN);
                assertEquals(4, ForkSize.blocks(size));
                assertEquals(policy == SizePolicy.SHARED, ForkSize.isAccurate(size));
                f.extend(relation, Fixture.MAIN, 10, 1);
                if (policy == SizePolicy.SHARED) {
                    assertEquals(ForkSize.accurate(11), relation.rememberedSize(Fixture.MAIN));
                    f.extend(relation, Fixture.MAIN, 5, 1);
                    assertEquals(ForkSize.accurate(11), relation.rememberedSize(Fixture.MAIN));
                } else {
                    assertEquals(ForkSize.UNKNOWN, relation.rememberedSize(Fixture.MAIN));
                }
            }
        }
    }

    @Test
    void aSharedSizeIsKnownFromCreationOn() {
        try (Fixture f = new Fixture(directory, SizePolicy.SHARED)) {
            SmgrRelation relation = f.relation(100);
            relation.create(Fixture.MAIN, false);
            assertEquals(ForkSize.accurate(0), relation.rememberedSize(Fixture.MAIN));
        }
    }

    @Test
    void hintsAreForgottenWhenRecoveryBegins() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            SmgrRelation relation = f.filled(100, 4);
            relation.nblocks(Fixture.MAIN);
            Files.write(f.file("100"), new byte[Fixture.PAGE], StandardOpenOption.APPEND);
            f.manager.inRecovery(true);
            assertEquals(ForkSize.UNKNOWN, relation.rememberedSize(Fixture.MAIN));
            assertEquals(5, relation.nblocks(Fixture.MAIN));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    @DisplayName("SMGR-4 a write past the remembered end leaves no wrong size behind")
    void writePastTheEnd(boolean recovery) {
        try (Fixture f = new Fixture(directory, SizePolicy.SHARED)) {
            f.manager.inRecovery(recovery);
            SmgrRelation relation = f.filled(100, 2);
            relation.nblocks(Fixture.MAIN);
            f.write(relation, Fixture.MAIN, 5, 5);
            assertEquals(6, relation.nblocks(Fixture.MAIN));
            if (recovery) {
                f.write(relation, Fixture.MAIN, 17, 17);
                assertEquals(18, relation.nblocks(Fixture.MAIN));
                assertEquals(
                        0, f.read(relation, Fixture.MAIN, 30), "redo reads zeros past the end");
                assertEquals(
                        24,
                        relation.nblocks(Fixture.MAIN),
                        "and reading made the lower segments, as PostgreSQL does");
            } else {
                assertThrows(
                        DamagedDataException.class, () -> f.write(relation, Fixture.MAIN, 17, 17));
            }
        }
    }

    @Test
    void recoveryReadsZerosWhereABlockWasCutOff() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            SmgrRelation relation = f.filled(100, 2);
            Files.write(f.file("100"), new byte[] {1, 2, 3}, StandardOpenOption.APPEND);
            assertThrows(DamagedDataException.class, () -> f.read(relation, Fixture.MAIN, 2));
            f.manager.inRecovery(true);
            assertEquals(0, f.read(relation, Fixture.MAIN, 2));
            assertEquals(0, f.read(relation, Fixture.MAIN, 7));
            assertEquals(2, relation.nblocks(Fixture.MAIN));
        }
    }

    @Test
    void truncatingToMoreThanThereIsFailsOutsideRecovery() {
        try (Fixture f = new Fixture(directory, SizePolicy.SHARED)) {
            SmgrRelation relation = f.filled(100, 2);
            RefusedException e =
                    assertThrows(RefusedException.class, () -> relation.truncate(Fixture.MAIN, 3));
            assertTrue(e.getMessage().endsWith("rel=1663/5/100 fork=main"), e.getMessage());
            assertEquals(2, relation.nblocks(Fixture.MAIN));
        }
    }

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    @DisplayName(
            "C09 an extension that fails half-way counts whole blocks only, and the next one"
                    + " overwrites the fragment")
    void c09PartialLastBlock(SizePolicy policy) throws IOException {
        FaultyDisk disk = new FaultyDisk(new PosixDisk());
        try (Fixture f = new Fixture(directory, policy, disk, 100)) {
            SmgrRelation relation = f.filled(100, 2);
            relation.nblocks(Fixture.MAIN);
            for (int i = 0; i < 1000; i++) {
                disk.room(3584);
                DiskException e =
                        assertThrows(
                                DiskException.class, () -> f.extend(relation, Fixture.MAIN, 2, 2));
                assertEquals(DiskException.ENOSPC, e.errno());
                assertTrue(e.mayRetry());
                assertEquals(2L * Fixture.PAGE + 3584, Files.size(f.file("100")));
                assertEquals(2, relation.nblocks(Fixture.MAIN));
            }
            disk.room(3 * Fixture.PAGE + 100);
            assertThrows(DiskException.class, () -> relation.zeroExtend(Fixture.MAIN, 2, 8, false));
            assertEquals(
                    5, relation.nblocks(Fixture.MAIN), "the whole blocks that did get there count");
            disk.room(Long.MAX_VALUE);
            assertThrows(DamagedDataException.class, () -> f.read(relation, Fixture.MAIN, 5));
            f.extend(relation, Fixture.MAIN, 5, 0x22);
            assertEquals(6, relation.nblocks(Fixture.MAIN));
            assertEquals(0x22, f.read(relation, Fixture.MAIN, 5));
            assertEquals(1, f.manager.openFileCount());
        }
    }

    @Test
    void noForkGrowsPastTheLastBlockNumber() {
        try (Fixture f = new Fixture(directory, SizePolicy.SHARED)) {
            SmgrRelation relation = f.filled(100, 1);
            assertThrows(
                    RefusedException.class,
                    () -> relation.extend(Fixture.MAIN, BlockNumber.INVALID, f.address, false));
            assertThrows(
                    RefusedException.class, () -> relation.zeroExtend(Fixture.MAIN, -3, 3, false));
            assertEquals(1, relation.nblocks(Fixture.MAIN));
        }
    }

    @Test
    void sizesPackUnsigned() {
        long size = ForkSize.accurate(-2);
        assertTrue(ForkSize.isKnown(size));
        assertTrue(ForkSize.isAccurate(size));
        assertEquals(0xFFFFFFFEL, BlockNumber.toLong(ForkSize.blocks(size)));
        assertFalse(ForkSize.isAccurate(ForkSize.hint(-2)));
        assertFalse(ForkSize.isKnown(ForkSize.UNKNOWN));
        assertFalse(ForkSize.isAccurate(ForkSize.UNKNOWN));
    }
}
