package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.BeforeContainer;
import org.agrona.UnsafeApi;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.NativeMemory;
import org.pgkernel.base.error.DiskException;

/** Several neighbouring blocks at once: reads, hints, and the look before an extension. */
class NeighbouringBlocksTest {
    private static final int PAGES = 64;

    @TempDir Path directory;

    private static long memory;

    @BeforeAll
    @BeforeContainer
    static void reserve() {
        memory = NativeMemory.reserve((long) PAGES * Fixture.PAGE);
    }

    @AfterAll
    @AfterContainer
    static void release() {
        NativeMemory.release(memory, (long) PAGES * Fixture.PAGE);
    }

    /** Pages in no order of address, so that a run is not one piece of memory. */
    private static long[] addresses() {
        long[] addresses = new long[PAGES];
        for (int i = 0; i < PAGES; i++) {
            addresses[i] = memory + (long) (i * 37 % PAGES) * Fixture.PAGE;
        }
        UnsafeApi.setMemory(memory, (long) PAGES * Fixture.PAGE, (byte) 0x55);
        return addresses;
    }

    private static void assertPage(int fill, long address, String what) {
        for (int at = 0; at < Fixture.PAGE; at += Long.BYTES) {
            assertEquals(fill * 0x0101010101010101L, UnsafeApi.getLong(address + at), what);
        }
    }

    @Test
    void aRunCrossesSegmentBorders() {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            SmgrRelation relation = f.filled(100, 30); // segments of 8
            f.manager.close(relation);
            long[] addresses = addresses();
            assertEquals(22, relation.readMany(Fixture.MAIN, 5, addresses, 3, 22));
            for (int i = 0; i < 22; i++) {
                assertPage(5 + i, addresses[3 + i], "block " + (5 + i));
            }
            assertPage(0x55, addresses[2], "before the run");
            assertPage(0x55, addresses[25], "after the run");
        }
    }

    @Property(tries = 300)
    void aRunReadsWhatSingleReadsReadAndEndsWithTheFork(
            @ForAll @IntRange(max = 40) int blocks,
            @ForAll @IntRange(max = 45) int first,
            @ForAll @IntRange(min = 1, max = 40) int count,
            @ForAll boolean reopened)
            throws IOException {
        Path own = Files.createTempDirectory("runs");
        try (Fixture f = new Fixture(own, SizePolicy.RECOVERY_ONLY)) {
            SmgrRelation relation = f.filled(100, blocks);
            if (reopened) {
                f.manager.close(relation);
            }
            long[] addresses = addresses();
            int there = Math.max(0, Math.min(count, blocks - first));
            assertEquals(there, relation.readMany(Fixture.MAIN, first, addresses, 0, count));
            for (int i = 0; i < count; i++) {
                assertPage(i < there ? first + i : 0x55, addresses[i], "block " + (first + i));
            }
            assertEquals(blocks, relation.nblocks(Fixture.MAIN), "reading changed the size");
            f.manager.unlinkAll(new SmgrRelation[] {relation}, 1, true);
        } finally {
            for (String left : new String[] {"base/5", "base", "global", ""}) {
                Files.delete(own.resolve(left));
            }
        }
    }

    @Test
    void aRunMakesNothingInRecovery() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            SmgrRelation relation = f.filled(100, 3);
            f.manager.inRecovery(true);
            assertEquals(1, relation.readMany(Fixture.MAIN, 2, addresses(), 0, 20));
            assertEquals(0, relation.readMany(Fixture.MAIN, 17, addresses(), 0, 20));
            assertEquals(0, relation.readMany(ForkNumber.FSM, 0, addresses(), 0, 2));
            assertEquals(3, f.fileBlocks("100"));
            assertFalse(Files.exists(f.file("100.1")));
        }
    }

    @Test
    void aPieceOfABlockIsNotRead() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            SmgrRelation relation = f.filled(100, 3);
            try (RandomAccessFile file = new RandomAccessFile(f.file("100").toFile(), "rw")) {
                file.setLength(3L * Fixture.PAGE - 100);
            }
            assertEquals(2, relation.readMany(Fixture.MAIN, 0, addresses(), 0, 5));
        }
    }

    @Test
    void hintsForARangePassOverWhatIsMissing() {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            SmgrRelation relation = f.filled(100, 20);
            relation.prefetch(Fixture.MAIN, 0, 20);
            relation.prefetch(Fixture.MAIN, 7, 2);
            relation.prefetch(Fixture.MAIN, 19, 500);
            relation.prefetch(ForkNumber.FSM, 0, 3);
            assertEquals(20, relation.nblocks(Fixture.MAIN));
            assertFalse(relation.exists(ForkNumber.FSM));
        }
    }

    @Test
    @DisplayName("C10(1) (file half): a block that is there where the fork should end is found")
    void whatIsInTheWayOfAnExtensionIsFound() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            SmgrRelation relation = f.filled(100, 8);
            relation.zeroExtend(Fixture.MAIN, 8, 1, false);
            f.extend(relation, Fixture.MAIN, 9, 9);
            int none = BlockNumber.INVALID;
            assertEquals(3, relation.firstInTheWay(Fixture.MAIN, 3, 1, memory));
            assertEquals(7, relation.firstInTheWay(Fixture.MAIN, 7, 5, memory));
            assertEquals(none, relation.firstInTheWay(Fixture.MAIN, 8, 1, memory), "only zeros");
            assertEquals(9, relation.firstInTheWay(Fixture.MAIN, 8, 2, memory), "behind zeros");
            assertEquals(none, relation.firstInTheWay(Fixture.MAIN, 10, 5, memory), "the true end");
            assertEquals(none, relation.firstInTheWay(Fixture.MAIN, 40, 5, memory));
            assertEquals(none, relation.firstInTheWay(ForkNumber.FSM, 0, 5, memory));
            try (RandomAccessFile file = new RandomAccessFile(f.file("100.1").toFile(), "rw")) {
                file.seek(2L * Fixture.PAGE);
                file.write(new byte[3500]);
            }
            assertEquals(none, relation.firstInTheWay(Fixture.MAIN, 10, 5, memory), "a fragment");
        }
    }

    @Test
    @DisplayName("SMGR-9 a backend's temporary relation has files of its own that nobody syncs")
    void temporaryRelationsHaveFilesOfTheirOwn() throws IOException {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            SmgrRelation plain = f.filled(100, 2);
            int queued = f.requests.pending();
            SmgrRelation mine = f.manager.open(Fixture.SPC, Fixture.DB, 100, 3);
            SmgrRelation other = f.manager.open(Fixture.SPC, Fixture.DB, 100, 4);
            for (SmgrRelation temporary : new SmgrRelation[] {mine, other}) {
                assertTrue(temporary.isTemporary());
                temporary.create(Fixture.MAIN, false);
                temporary.create(ForkNumber.FSM, false);
                for (int i = 0; i < 10; i++) {
                    f.extend(temporary, Fixture.MAIN, i, 100 + 10 * temporary.backend() + i);
                }
                temporary.zeroExtend(ForkNumber.FSM, 0, 1, false);
            }
            assertFalse(plain.isTemporary());
            assertEquals(SmgrRelation.SHARED, plain.backend());
            assertEquals("1663/5/t3_100", mine.toString());
            assertEquals("base/5/t4_100_fsm", other.path(ForkNumber.FSM));
            assertEquals(8, f.fileBlocks("t3_100"));
            assertEquals(2, f.fileBlocks("t3_100.1"));
            assertEquals(1, f.fileBlocks("t4_100_fsm"));
            assertEquals(2, f.fileBlocks("100"));
            assertEquals(1, f.read(plain, Fixture.MAIN, 1));
            assertEquals(131, f.read(mine, Fixture.MAIN, 1));
            assertEquals(149, f.read(other, Fixture.MAIN, 9));
            f.write(mine, Fixture.MAIN, 1, 77);
            mine.truncate(Fixture.MAIN, 5);
            assertEquals(queued, f.requests.pending(), "a sync was queued for a temporary file");

            // A handle that was closed finds its own files again, not the other relation's.
            f.manager.close(mine);
            assertEquals(77, f.read(mine, Fixture.MAIN, 1));
            assertEquals(5, mine.nblocks(Fixture.MAIN));
            DiskException e =
                    assertThrows(DiskException.class, () -> f.read(mine, ForkNumber.INIT, 0));
            assertTrue(e.getMessage().contains("rel=1663/5/t3_100 fork=init"), e.getMessage());

            f.manager.unlinkAll(new SmgrRelation[] {mine}, 1, false);
            for (String gone : new String[] {"t3_100", "t3_100.1", "t3_100_fsm"}) {
                assertFalse(Files.exists(f.file(gone)), gone + " stays after its drop");
            }
            assertEquals(0, f.requests.pendingUnlinks());
            assertEquals(queued, f.requests.pending(), "the other relation's syncs were forgotten");
            assertEquals(1, f.read(plain, Fixture.MAIN, 1));
            assertEquals(149, f.read(other, Fixture.MAIN, 9));
            f.checkpoint();
        }
    }

    @Test
    void handlesOfOneNumberAreToldApartByBackend() {
        try (Fixture f = new Fixture(directory, SizePolicy.SHARED)) {
            SmgrRelation[] handles = new SmgrRelation[300];
            for (int backend = -1; backend < 299; backend++) {
                handles[backend + 1] = f.manager.open(Fixture.SPC, Fixture.DB, 100, backend);
            }
            assertEquals(300, Arrays.stream(handles).distinct().count());
            for (int backend = -1; backend < 299; backend++) {
                assertTrue(
                        handles[backend + 1]
                                == f.manager.open(Fixture.SPC, Fixture.DB, 100, backend));
            }
            assertTrue(handles[0] == f.relation(100));
        }
    }
}
