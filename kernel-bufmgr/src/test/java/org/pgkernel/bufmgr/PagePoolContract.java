package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageChecksum;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;

/** What anybody may expect of a pool of pages, shared or a backend's own. Sixteen buffers. */
abstract class PagePoolContract {
    static final ForkNumber MAIN = ForkNumber.MAIN;
    static final int BUFFERS = 16;

    @TempDir Path directory;

    PoolFixture f;
    PagePool pool;
    final int[] buffers = new int[64];
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);

    abstract PagePool open(PoolFixture fixture, int nbuffers);

    @BeforeEach
    void open() {
        f = new PoolFixture(directory, false, SizePolicy.RECOVERY_ONLY, 16);
        pool = open(f, BUFFERS);
    }

    @AfterEach
    void close() {
        try {
            assertEquals(0, pool.pinned(), "pins left");
            pool.check();
        } finally {
            pool.close();
        }
    }

    /** A relation of pages with their numbers in them, version 0, dirty. */
    SmgrRelation create(int rel, int blocks) {
        SmgrRelation relation = pool.relation(rel);
        relation.create(MAIN, false);
        for (int block = 0; block < blocks; block++) {
            assertEquals(1, pool.extendBy(relation, 1, buffers));
            assertEquals(block, pool.block(buffers[0]));
            stamp(buffers[0], rel, block, 0);
            pool.release(buffers[0], ReadMode.NORMAL);
        }
        return relation;
    }

    void stamp(int buffer, int rel, int block, int version) {
        pool.change(
                buffer,
                bytes -> {
                    Page.init(bytes, 0);
                    bytes.putInt(4096, rel);
                    bytes.putInt(4100, block);
                    bytes.putInt(4104, version);
                });
    }

    void change(SmgrRelation r, int block, int version) {
        int buffer = pool.read(r, block, ReadMode.NORMAL);
        pool.change(buffer, bytes -> bytes.putInt(4104, version));
        pool.release(buffer, ReadMode.NORMAL);
    }

    int version(SmgrRelation r, int block) {
        int buffer = pool.read(r, block, ReadMode.NORMAL);
        pool.wrap(buffer, page);
        assertEquals(r.relNumber(), page.getInt(4096));
        assertEquals(block, page.getInt(4100));
        int version = page.getInt(4104);
        pool.release(buffer, ReadMode.NORMAL);
        return version;
    }

    private boolean isZero(int buffer) {
        pool.wrap(buffer, page);
        return page.getLong(0) == 0 && Page.isNew(page) && page.getInt(4104) == 0;
    }

    Path file(SmgrRelation r) {
        return directory.resolve(r.path(MAIN));
    }

    private void assertNames(KernelException e, SmgrRelation r, int block) {
        assertTrue(
                e.getMessage().contains("rel=" + r + " fork=main block=" + block), e.getMessage());
    }

    private void releaseAll(int count) {
        for (int i = 0; i < count; i++) {
            pool.release(buffers[i], ReadMode.NORMAL);
        }
    }

    @Test
    void everyPageComesBackAfterEviction() {
        SmgrRelation r = create(7, 100);
        Random random = new Random(1); // seed 1
        int[] versions = new int[100];
        for (int i = 1; i < 3000; i++) {
            int block = random.nextInt(100);
            if (random.nextBoolean()) {
                change(r, block, i);
                versions[block] = i;
            } else {
                assertEquals(versions[block], version(r, block), "seed 1");
            }
        }
        pool.flush(r);
        pool.dropAll(r);
        for (int block = 0; block < 100; block++) {
            assertEquals(versions[block], version(r, block), "seed 1");
        }
    }

    @Test
    void aReadOfNeighboursGivesWhatSingleReadsGive() {
        SmgrRelation r = create(7, 60);
        Random random = new Random(2); // seed 2
        int[] versions = new int[60];
        int[] calls = {0};
        f.disk.beforeVectoredRead = (path, offset) -> calls[0]++;
        for (int i = 1; i < 2000; i++) {
            int block = random.nextInt(60);
            if (random.nextInt(4) == 0) {
                change(r, block, i);
                versions[block] = i;
                continue;
            }
            int count = 1 + random.nextInt(Math.min(8, 60 - block));
            int got = pool.readMany(r, block, count, buffers);
            assertTrue(got >= 1 && got <= Math.min(count, BUFFERS / 4), "seed 2");
            for (int b = 0; b < got; b++) {
                pool.wrap(buffers[b], page);
                assertEquals(block + b, page.getInt(4100), "seed 2");
                assertEquals(versions[block + b], page.getInt(4104), "seed 2");
            }
            releaseAll(got);
        }
        assertTrue(calls[0] > 100, "no runs were read");
    }

    @Test
    void aPageAtFaultAmongNeighboursIsNamedAndTheOthersStay() {
        SmgrRelation r = create(7, 30);
        pool.flush(r);
        pool.dropAll(r);
        f.disk.beforeRead =
                (path, offset) -> {
                    if (offset == 6L * Page.SIZE && !path.endsWith(".1")) {
                        throw new DiskException("planted", path, DiskException.EIO);
                    }
                };
        for (int i = 0; i < 50; i++) {
            assertNames(
                    assertThrows(DiskException.class, () -> pool.readMany(r, 4, 4, buffers)), r, 6);
            assertEquals(0, pool.pinned());
        }
        f.disk.beforeRead = (path, offset) -> fail("a good neighbour was not kept");
        for (int block : new int[] {4, 5, 7}) {
            assertEquals(0, version(r, block));
        }
        f.disk.beforeRead = (path, offset) -> {};
        assertEquals(4, pool.readMany(r, 4, 4, buffers));
        releaseAll(4);
        assertNames(
                assertThrows(DamagedDataException.class, () -> pool.readMany(r, 28, 4, buffers)),
                r,
                30);
        assertEquals(0, version(r, 29));
    }

    @Test
    void whenAllArePinnedTheErrorIsPromptAndOneReleaseIsEnough() {
        SmgrRelation r = create(7, 20);
        int[] pinned = new int[BUFFERS];
        for (int i = 0; i < BUFFERS; i++) {
            pinned[i] = pool.read(r, i, ReadMode.NORMAL);
        }
        for (int i = 0; i < 100; i++) {
            NoFreeBufferException e =
                    assertThrows(
                            NoFreeBufferException.class, () -> pool.read(r, 17, ReadMode.NORMAL));
            assertTrue(e.mayRetry());
            assertThrows(NoFreeBufferException.class, () -> pool.extendBy(r, 4, buffers));
        }
        assertEquals(20, r.nblocks(MAIN));
        int again = pool.read(r, 3, ReadMode.NORMAL);
        assertEquals(pinned[3], again);
        pool.release(again, ReadMode.NORMAL);
        assertEquals(BUFFERS, pool.pinned());
        pool.release(pinned[3], ReadMode.NORMAL);
        assertEquals(0, version(r, 17));
        for (int i = 0; i < BUFFERS; i++) {
            if (i != 3) {
                pool.release(pinned[i], ReadMode.NORMAL);
            }
        }
    }

    @Test
    void aDirtyVictimThatCannotBeWrittenStaysDirtyAndIsNamed() {
        SmgrRelation r = create(7, 40);
        for (int i = 0; i < BUFFERS; i++) {
            change(r, i, 9);
        }
        f.disk.beforeWrite = PartialWrite.failing(0, DiskException.ENOSPC);
        for (int i = 0; i < 100; i++) {
            DiskException e =
                    assertThrows(DiskException.class, () -> pool.read(r, 30, ReadMode.NORMAL));
            assertTrue(e.getMessage().startsWith("could not write a dirty page rel=" + r));
            assertEquals(0, pool.pinned());
        }
        f.disk.beforeWrite = (path, offset) -> {};
        assertEquals(0, version(r, 30));
        for (int i = 0; i < BUFFERS; i++) {
            assertEquals(9, version(r, i));
        }
    }

    @Test
    void checksumsAreSetOnWriteAndJudgedOnRead() throws Exception {
        SmgrRelation r = create(7, 10);
        pool.flush(r);
        pool.dropAll(r);
        byte[] bytes = Files.readAllBytes(file(r));
        UnsafeBuffer third = new UnsafeBuffer(bytes, 2 * Page.SIZE, Page.SIZE);
        assertEquals(Page.checksum(third), PageChecksum.compute(third, 2));
        bytes[2 * Page.SIZE + 5000] ^= 1;
        Files.write(file(r), bytes);
        for (int i = 0; i < 50; i++) {
            assertNames(
                    assertThrows(
                            DamagedDataException.class, () -> pool.read(r, 2, ReadMode.NORMAL)),
                    r,
                    2);
        }
        int zeros = pool.read(r, 2, ReadMode.ZERO_ON_ERROR);
        assertTrue(isZero(zeros));
        pool.release(zeros, ReadMode.ZERO_ON_ERROR);
        assertEquals(0, version(r, 3));
    }

    @Test
    @DisplayName("C27: the zeroing modes zero only what is not there, and read nothing")
    void theZeroingModesZeroOnlyWhatIsNotThere() {
        SmgrRelation r = create(7, 5);
        change(r, 1, 44);
        pool.flush(r);
        f.disk.beforeRead = (path, offset) -> fail("read");
        for (ReadMode mode :
                new ReadMode[] {ReadMode.ZERO_AND_LOCK, ReadMode.ZERO_AND_CLEANUP_LOCK}) {
            int buffer = pool.read(r, 1, mode);
            pool.wrap(buffer, page);
            assertEquals(44, page.getInt(4104));
            pool.release(buffer, mode);
            pool.dropFrom(r, 2);
            int fresh = pool.read(r, 2, mode);
            assertTrue(isZero(fresh));
            pool.release(fresh, mode);
        }
    }

    @Test
    void aDropLeavesNothingAndWritesNothing() {
        SmgrRelation r = create(7, 10);
        SmgrRelation other = create(8, 4);
        change(other, 1, 6);
        f.disk.beforeWrite = (path, offset) -> fail("a dropped page was written");
        pool.dropFrom(r, 6);
        r.truncate(MAIN, 6);
        assertNames(
                assertThrows(DamagedDataException.class, () -> pool.read(r, 9, ReadMode.NORMAL)),
                r,
                9);
        assertEquals(0, version(r, 5), "a page below the cut");
        pool.dropAll(r);
        f.smgr.unlinkAll(new SmgrRelation[] {r}, 1, true);
        assertFalse(Files.exists(file(r)));
        assertThrows(DiskException.class, () -> pool.read(r, 0, ReadMode.NORMAL));
        assertEquals(6, version(other, 1));
        f.disk.beforeWrite = (path, offset) -> {};
        assertEquals(0, version(create(7, 3), 2));
    }

    @Test
    @DisplayName(
            "C09: 1,000 times, the write of 1 or 4 new pages stores 3.5 KiB and finds the disk full: nothing is left,"
                    + " block 2 is an error, the next extension overwrites the piece")
    void extensionThatFailsHalfWay() throws Exception {
        SmgrRelation r = create(7, 2);
        pool.flush(r);
        for (int round = 0; round < 1000; round++) {
            int count = round % 2 == 0 ? 1 : 4;
            f.disk.beforeWrite = PartialWrite.failing(3584, DiskException.ENOSPC);
            DiskException e =
                    assertThrows(DiskException.class, () -> pool.extendBy(r, count, buffers));
            assertEquals(DiskException.ENOSPC, e.errno());
            assertEquals(2L * Page.SIZE + 3584, Files.size(file(r)));
            assertEquals(2, r.nblocks(MAIN));
            assertEquals(0, pool.pinned());
            assertNames(
                    assertThrows(
                            DamagedDataException.class, () -> pool.read(r, 2, ReadMode.NORMAL)),
                    r,
                    2);
            f.disk.beforeWrite = (path, offset) -> {};
            assertEquals(count, pool.extendBy(r, count, buffers));
            stamp(buffers[0], 7, 2, round + 1);
            releaseAll(count);
            pool.flush(r);
            pool.dropAll(r);
            assertEquals(2 + count, r.nblocks(MAIN));
            assertEquals(round + 1, version(r, 2));
            pool.dropFrom(r, 2);
            r.truncate(MAIN, 2);
            pool.check();
        }
    }

    @Test
    @DisplayName(
            "C10(1): a size that is too small makes an extension find a live page, in the pool or in the file")
    void aSizeThatIsTooSmallOverwritesNothing() {
        SmgrRelation r = create(7, 5);
        pool.flush(r);
        f.disk.sizeOf = (path, size) -> Math.min(size, 3L * Page.SIZE);
        for (boolean resident : new boolean[] {true, false}) {
            if (!resident) {
                pool.dropAll(r);
            }
            for (int count : new int[] {1, 4}) {
                assertNames(
                        assertThrows(
                                DamagedDataException.class, () -> pool.extendBy(r, count, buffers)),
                        r,
                        3);
                assertEquals(0, pool.pinned());
            }
        }
        f.disk.sizeOf = (path, size) -> size;
        for (int block = 0; block < 5; block++) {
            assertEquals(0, version(r, block));
        }
    }

    @Test
    @DisplayName("C10(3): a page of zeros past the end stays, also when the file cannot grow")
    void aZeroPagePastTheEndIsTakenOver() {
        SmgrRelation r = create(7, 5);
        int stray = pool.read(r, 5, ReadMode.ZERO_AND_LOCK);
        pool.release(stray, ReadMode.ZERO_AND_LOCK);
        int pin = pool.read(r, 5, ReadMode.NORMAL);
        assertEquals(stray, pin);
        f.disk.beforeWrite = PartialWrite.failing(0, DiskException.ENOSPC);
        assertThrows(DiskException.class, () -> pool.extendBy(r, 3, buffers));
        f.disk.beforeWrite = (path, offset) -> {};
        assertEquals(1, pool.pinned(), "the pin from before, and no other");
        assertEquals(3, pool.extendBy(r, 3, buffers));
        assertEquals(stray, buffers[0]);
        assertEquals(8, r.nblocks(MAIN));
        releaseAll(3);
        pool.release(pin, ReadMode.NORMAL);
    }

    @Test
    @DisplayName("R09: one extension takes a share of the buffers, one page at least")
    void anExtensionTakesAShareOfTheBuffers() {
        SmgrRelation r = create(7, 2);
        assertEquals(BUFFERS / 4, pool.extendBy(r, 40, buffers));
        releaseAll(BUFFERS / 4);
        int[] pinned = new int[BUFFERS - 1];
        SmgrRelation other = create(8, BUFFERS - 1);
        for (int i = 0; i < pinned.length; i++) {
            pinned[i] = pool.read(other, i, ReadMode.NORMAL);
        }
        assertEquals(1, pool.extendBy(r, 8, buffers));
        releaseAll(1);
        for (int buffer : pinned) {
            pool.release(buffer, ReadMode.NORMAL);
        }
    }
}
