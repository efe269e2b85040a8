package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Files;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;

/** What a backend's own pool does in its own way; the rest is in {@link LocalPoolContractTest}. */
@Timeout(60)
class LocalBufferPoolTest {
    private static final ForkNumber MAIN = ForkNumber.MAIN;
    private static final int BACKEND = 3;

    @TempDir Path directory;

    PoolFixture f;
    LocalBufferPool local;
    final int[] buffers = new int[64];

    @BeforeEach
    void open() {
        f = new PoolFixture(directory, false, SizePolicy.RECOVERY_ONLY, 16);
        f.pool(16, true, DropStrategy.FULL_SCAN);
        local = new LocalBufferPool(f.smgr, BACKEND, 16, true);
    }

    @AfterEach
    void close() {
        try {
            assertEquals(0, local.pinnedBuffers(), "pins left");
            local.check();
            assertEquals(0, f.pool.pinnedBuffers());
            PoolInspection.check(f.pool);
        } finally {
            local.close();
            f.close();
        }
    }

    private UnsafeBuffer page(int buffer) {
        UnsafeBuffer view = new UnsafeBuffer(0L, 0);
        local.wrap(buffer, view);
        return view;
    }

    private SmgrRelation create(int rel, int blocks) {
        SmgrRelation relation = local.relation(PoolFixture.SPC, PoolFixture.DB, rel);
        relation.create(MAIN, false);
        for (int block = 0; block < blocks; block++) {
            int buffer = local.extend(relation, MAIN);
            assertEquals(block, local.block(buffer));
            stamp(buffer, rel, block, 0);
            local.release(buffer);
        }
        return relation;
    }

    private void stamp(int buffer, int rel, int block, int version) {
        UnsafeBuffer page = page(buffer);
        Page.init(page, 0);
        page.putInt(4096, rel);
        page.putInt(4100, block);
        page.putInt(4104, version);
        local.markDirty(buffer);
    }

    private void change(SmgrRelation r, int block, int version) {
        int buffer = local.read(r, MAIN, block, ReadMode.NORMAL);
        page(buffer).putInt(4104, version);
        local.markDirty(buffer);
        local.release(buffer);
    }

    private int version(SmgrRelation r, int block) {
        int buffer = local.read(r, MAIN, block, ReadMode.NORMAL);
        assertEquals(r.relNumber(), page(buffer).getInt(4096));
        assertEquals(block, page(buffer).getInt(4100));
        int version = page(buffer).getInt(4104);
        local.release(buffer);
        return version;
    }

    private Path file(String name) {
        return directory.resolve("base/" + PoolFixture.DB + "/" + name);
    }

    @Test
    void everyPageComesBackAfterEvictionAndNothingIsSynced() {
        int queued = f.syncs.pending();
        SmgrRelation r = create(7, 100);
        for (int i = 0; i < 100; i++) {
            change(r, i, i + 1000);
        }
        for (int i = 0; i < 100; i++) {
            assertEquals(i + 1000, version(r, i));
        }
        assertEquals(queued, f.syncs.pending());
        assertTrue(Files.exists(file("t3_7")));
        assertTrue(Files.exists(file("t3_7.6")));
        assertFalse(Files.exists(file("7")));
    }

    @Test
    void numbersAreNegativeAndASharedPageOfTheSameNumberIsAnother() {
        SmgrRelation shared = f.create(7, MAIN, 5);
        SmgrRelation r = create(7, 5);
        f.change(shared, MAIN, 2, 11);
        change(r, 2, 22);
        int a = f.pool.read(shared, MAIN, 2, ReadMode.NORMAL);
        int b = local.read(r, MAIN, 2, ReadMode.NORMAL);
        assertTrue(a >= 0 && b < 0);
        assertEquals(11, f.version(a));
        assertEquals(22, page(b).getInt(4104));
        f.pool.release(a);
        local.release(b);
        f.pool.dropRelations(new SmgrRelation[] {shared}, 1);
        assertEquals(22, version(r, 2));
    }

    @Test
    void aSharedPoolRefusesATemporaryRelation() {
        SmgrRelation r = create(7, 2);
        assertThrows(AssertionError.class, () -> f.pool.read(r, MAIN, 0, ReadMode.NORMAL));
        assertThrows(AssertionError.class, () -> f.pool.extend(r, MAIN, false));
        assertThrows(
                AssertionError.class,
                () -> f.pool.readMany(r, MAIN, 0, 1, ReadMode.NORMAL, null, buffers));
        assertThrows(AssertionError.class, () -> f.pool.dropRelations(new SmgrRelation[] {r}, 1));
        SmgrRelation others = f.smgr.open(PoolFixture.SPC, PoolFixture.DB, 7, BACKEND + 1);
        assertThrows(AssertionError.class, () -> local.read(others, MAIN, 0, ReadMode.NORMAL));
    }

    @Test
    void whenAllArePinnedTheErrorSaysSo() {
        SmgrRelation r = create(7, 20);
        int[] pinned = new int[16];
        for (int i = 0; i < 16; i++) {
            pinned[i] = local.read(r, MAIN, i, ReadMode.NORMAL);
        }
        NoFreeBufferException e =
                assertThrows(
                        NoFreeBufferException.class,
                        () -> local.read(r, MAIN, 17, ReadMode.NORMAL));
        assertTrue(e.getMessage().startsWith("no empty local buffer"), e.getMessage());
        assertTrue(e.getMessage().endsWith("temp_buffers=16 backend=3"), e.getMessage());
        assertThrows(NoFreeBufferException.class, () -> local.extendBy(r, MAIN, 4, buffers));
        assertEquals(20, r.nblocks(MAIN));
        local.pinAgain(pinned[3]);
        local.release(pinned[3]);
        assertEquals(16, local.pinnedBuffers());
        local.release(pinned[3]);
        assertEquals(0, version(r, 17));
        for (int i = 0; i < 16; i++) {
            if (i != 3) {
                local.release(pinned[i]);
            }
        }
    }

    @Test
    void aPageUsedOftenOutlivesPagesUsedOnce() {
        SmgrRelation r = create(7, 1);
        SmgrRelation other = create(8, 60);
        for (int i = 0; i < 10; i++) {
            version(r, 0);
        }
        change(r, 0, 5);
        f.disk.beforeRead =
                (path, offset) -> assertFalse(path.endsWith("t3_7") && offset == 0, "evicted");
        for (int i = 0; i < 20; i++) {
            version(other, i);
        }
        assertEquals(5, version(r, 0));
    }

    @Test
    void aDropLeavesNothingAndWritesNothing() {
        SmgrRelation r = create(7, 10);
        SmgrRelation other = create(8, 4);
        change(other, 1, 6);
        f.disk.beforeWrite =
                (path, offset) -> assertFalse(path.endsWith("t3_7"), "a dropped page was written");
        int pinned = local.read(r, MAIN, 4, ReadMode.NORMAL);
        RefusedException e = assertThrows(RefusedException.class, () -> local.dropRelation(r));
        assertTrue(e.getMessage().endsWith("rel=1663/5/t3_7 fork=main block=4"), e.getMessage());
        change(r, 9, 3); // still there, all of them
        local.release(pinned);
        local.dropFork(r, MAIN, 6);
        r.truncate(MAIN, 6);
        assertThrows(DamagedDataException.class, () -> local.read(r, MAIN, 9, ReadMode.NORMAL));
        local.dropRelation(r);
        f.smgr.unlinkAll(new SmgrRelation[] {r}, 1, false);
        assertFalse(Files.exists(file("t3_7")), "a temporary file goes at once");
        assertThrows(DiskException.class, () -> local.read(r, MAIN, 0, ReadMode.NORMAL));
        assertEquals(6, version(other, 1));
        f.disk.beforeWrite = (path, offset) -> {};
        SmgrRelation again = create(7, 3);
        assertEquals(0, version(again, 2));
    }

    @Test
    void hintsAreGivenForWhatIsNotHere() {
        SmgrRelation r = create(7, 40);
        assertFalse(local.prefetch(r, MAIN, 39));
        assertTrue(local.prefetch(r, MAIN, 0));
    }

    @Test
    void sizesOutOfRangeAreRefusedInWords() {
        for (int wrong : new int[] {0, -1, 99, Integer.MAX_VALUE}) {
            RefusedException e =
                    assertThrows(
                            RefusedException.class,
                            () -> LocalBufferPool.open(f.smgr, BACKEND, wrong, true));
            assertTrue(e.getMessage().endsWith("temp_buffers=" + wrong), e.getMessage());
        }
        assertThrows(RefusedException.class, () -> LocalBufferPool.open(f.smgr, -1, 100, true));
        LocalBufferPool.open(f.smgr, BACKEND, 100, true).close();
    }
}
