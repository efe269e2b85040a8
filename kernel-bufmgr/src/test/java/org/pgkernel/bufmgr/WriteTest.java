package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageChecksum;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.smgr.SmgrRelation;

@Timeout(30)
class WriteTest {
    @TempDir Path directory;

    PoolFixture f;

    /** What happened, in order: {@code gate N}, {@code write block}. */
    final List<String> events = Collections.synchronizedList(new ArrayList<>());

    @BeforeEach
    void open() {
        f =
                new PoolFixture(directory, false)
                        .pool(64, true, DropStrategy.FULL_SCAN, lsn -> events.add("gate " + lsn));
        f.disk.beforeWrite = (path, offset) -> events.add("write " + offset / Page.SIZE);
        f.pool.hintImageLog(new RecordingHintLog());
    }

    @AfterEach
    void close() {
        assertEquals(0, f.pool.pinnedBuffers());
        PoolInspection.check(f.pool);
        f.close();
    }

    @Test
    void theGateIsAskedWithThePageLsnBeforeEachWrite() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 3);
        for (int i = 0; i < 3; i++) {
            int b = f.pool.read(r, ForkNumber.MAIN, i, ReadMode.NORMAL);
            f.pool.lockExclusive(b);
            Page.setLsn(f.page(b), 100 + i);
            f.pool.markDirty(b);
            f.pool.unlock(b);
            f.pool.release(b);
        }
        events.clear();
        assertEquals(3, f.pool.flushAll());
        assertEquals(
                List.of("gate 100", "write 0", "gate 101", "write 1", "gate 102", "write 2"),
                events);
    }

    @Test
    void aGateThatFailsKeepsThePageFromDisk() {
        f.close();
        boolean[] fail = {false};
        f =
                new PoolFixture(directory, false)
                        .pool(
                                16,
                                true,
                                DropStrategy.FULL_SCAN,
                                lsn -> {
                                    if (fail[0]) {
                                        throw new KernelStoppedException("planted");
                                    }
                                });
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 3);
        f.change(r, ForkNumber.MAIN, 1, 8);
        fail[0] = true;
        assertThrows(KernelStoppedException.class, () -> f.pool.flushAll());
        assertEquals(0, f.versionOnDisk(r, ForkNumber.MAIN, 1));
        fail[0] = false;
        assertEquals(1, f.pool.flushAll());
        assertEquals(8, f.versionOnDisk(r, ForkNumber.MAIN, 1));
    }

    @Test
    void theCheckpointWritesEachTablespaceByRelationForkAndBlock() throws Exception {
        Files.createDirectories(directory.resolve("pg_tblspc/20000/PG_15_202209061/5"));
        List<SmgrRelation> relations =
                new ArrayList<>(
                        List.of(
                                f.smgr.open(20000, 5, 3),
                                f.smgr.open(1663, 5, 70),
                                f.smgr.open(1663, 5, 9)));
        List<String> expected = new ArrayList<>();
        for (SmgrRelation r : relations) {
            for (ForkNumber fork : List.of(ForkNumber.MAIN, ForkNumber.FSM)) {
                r.create(fork, false);
                for (int i = 0; i < 10; i++) {
                    f.pool.release(f.pool.extend(r, fork, false));
                }
            }
        }
        Random random = new Random(1);
        List<int[]> pages = new ArrayList<>();
        for (int r = 0; r < 3; r++) {
            for (int fork = 0; fork < 2; fork++) {
                for (int i = 0; i < 10; i++) {
                    pages.add(new int[] {r, fork, i});
                }
            }
        }
        Collections.shuffle(pages, random);
        for (int[] p : pages) {
            int b = f.pool.read(relations.get(p[0]), ForkNumber.of(p[1]), p[2], ReadMode.NORMAL);
            f.pool.lockExclusive(b);
            f.pool.markDirty(b);
            f.pool.unlock(b);
            f.pool.release(b);
        }
        for (int r : new int[] {2, 1, 0}) {
            for (int fork = 0; fork < 2; fork++) {
                for (int i = 0; i < 10; i++) {
                    expected.add(f.file(relations.get(r), ForkNumber.of(fork)) + " " + i);
                }
            }
        }
        List<String> written = new ArrayList<>();
        f.disk.beforeWrite = (path, offset) -> written.add(path + " " + offset / Page.SIZE);
        int pending = f.syncs.pending();
        assertEquals(60, f.pool.flushAll());
        // Tablespaces take turns: CheckpointWriteTest.
        written.sort(Comparator.comparing(w -> w.contains("pg_tblspc")));
        assertEquals(expected, written);
        assertTrue(
                f.syncs.pending() >= 6 && f.syncs.pending() >= pending,
                "each written file waits for its sync");
        assertEquals(0, f.pool.flushAll(), "nothing is dirty any more");
    }

    @Test
    void theOrderOfManyRandomPagesIsSorted() {
        WriteOrder order = new WriteOrder();
        Random random = new Random(7);
        for (int round = 0; round < 20; round++) {
            order.clear();
            int n = random.nextInt(3000);
            int[][] tags = new int[n][];
            for (int i = 0; i < n; i++) {
                int block = random.nextInt(4) == 0 ? random.nextInt() : random.nextInt(50);
                tags[i] =
                        new int[] {
                            random.nextInt(3) - 1, random.nextInt(5) - 2, random.nextInt(4), block
                        };
                order.add(i, tags[i][0], tags[i][1], tags[i][2], tags[i][3]);
            }
            order.sort();
            boolean[] seen = new boolean[n];
            for (int i = 0; i < n; i++) {
                assertFalse(seen[order.buffer(i)]);
                seen[order.buffer(i)] = true;
                if (i > 0) {
                    assertTrue(compare(tags[order.buffer(i - 1)], tags[order.buffer(i)]) <= 0);
                }
            }
        }
    }

    private static int compare(int[] a, int[] b) {
        for (int i = 0; i < a.length; i++) {
            int c = Integer.compareUnsigned(a[i], b[i]);
            if (c != 0) {
                return c;
            }
        }
        return 0;
    }

    @Test
    @DisplayName(
            "C32: a page that changes while it is written stays dirty, and its newest version is written later")
    void aChangeDuringTheWriteIsNotLost() throws Exception {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 3);
        f.change(r, ForkNumber.MAIN, 1, 10);
        CountDownLatch copied = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        f.disk.beforeWrite =
                (path, offset) -> {
                    copied.countDown();
                    ReadAndExtendTest.await(goOn);
                };
        Thread cleaner = new Thread(() -> f.pool.flushAll());
        cleaner.start();
        ReadAndExtendTest.await(copied);
        // A hint, as only hints may change a page whose shared lock the writer holds.
        int b = f.pool.read(r, ForkNumber.MAIN, 1, ReadMode.NORMAL);
        f.pool.lockShared(b);
        f.page(b).putInt(4104, 11);
        f.pool.markDirtyHint(b, true);
        f.pool.unlock(b);
        f.pool.release(b);
        f.disk.beforeWrite = (path, offset) -> {};
        goOn.countDown();
        cleaner.join();
        assertEquals(
                10,
                f.versionOnDisk(r, ForkNumber.MAIN, 1),
                "the checksummed copy was taken before the change");
        UnsafeBuffer page = new UnsafeBuffer(f.onDisk(r, ForkNumber.MAIN, 1));
        assertEquals(Page.checksum(page), PageChecksum.compute(page, 1));
        assertNotEquals(0, f.pool.descriptors.state(b) & BufferState.DIRTY);
        assertEquals(1, f.pool.flushAll());
        assertEquals(11, f.versionOnDisk(r, ForkNumber.MAIN, 1));
        assertEquals(0, f.pool.descriptors.state(b) & BufferState.DIRTY);
        assertFalse(f.pool.dirty.isSet(b));
    }

    @Test
    @DisplayName("C32: an exclusive change waits for the write, and is dirty after it")
    void anExclusiveChangeWaitsForTheWrite() throws Exception {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 3);
        f.change(r, ForkNumber.MAIN, 1, 10);
        CountDownLatch writing = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        f.disk.beforeWrite =
                (path, offset) -> {
                    writing.countDown();
                    ReadAndExtendTest.await(goOn);
                };
        Thread cleaner = new Thread(() -> f.pool.flushAll());
        cleaner.start();
        ReadAndExtendTest.await(writing);
        Thread changer = new Thread(() -> f.change(r, ForkNumber.MAIN, 1, 12));
        changer.start();
        changer.join(100);
        assertTrue(changer.isAlive());
        f.disk.beforeWrite = (path, offset) -> {};
        goOn.countDown();
        cleaner.join();
        changer.join();
        assertEquals(10, f.versionOnDisk(r, ForkNumber.MAIN, 1));
        assertEquals(1, f.pool.flushAll());
        assertEquals(12, f.versionOnDisk(r, ForkNumber.MAIN, 1));
    }

    @Test
    void aFailedWriteKeepsThePageDirtyAndTheNextOneSucceeds() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 3);
        f.change(r, ForkNumber.MAIN, 1, 10);
        f.disk.beforeWrite =
                (path, offset) -> {
                    throw new DiskException("planted file=" + path, DiskException.EIO);
                };
        assertThrows(DiskException.class, () -> f.pool.flushAll());
        assertTrue(
                PoolInspection.descriptors(f.pool).stream()
                        .anyMatch(d -> d.dirty() && d.ioError() && d.block() == 1));
        f.disk.beforeWrite = (path, offset) -> {};
        assertEquals(1, f.pool.flushAll());
        assertEquals(10, f.versionOnDisk(r, ForkNumber.MAIN, 1));
        assertTrue(
                PoolInspection.descriptors(f.pool).stream()
                        .noneMatch(PoolInspection.Descriptor::ioError));
    }

    @Test
    void hintsAreNotWrittenInRecoveryWhenTheyWouldHaveToBeLogged() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 3);
        int b = f.pool.read(r, ForkNumber.MAIN, 1, ReadMode.NORMAL);
        f.pool.lockShared(b);
        f.smgr.inRecovery(true);
        f.pool.markDirtyHint(b, true);
        assertEquals(0, f.pool.descriptors.state(b) & BufferState.DIRTY, "checksums are on");
        f.smgr.inRecovery(false);
        f.pool.markDirtyHint(b, true);
        assertNotEquals(0, f.pool.descriptors.state(b) & BufferState.DIRTY);
        f.pool.flushOne(b);
        f.pool.unlock(b);
        f.pool.release(b);

        try (PoolFixture plain = new PoolFixture(directory.resolve("plain"), true)) {
            plain.pool(16, false, DropStrategy.FULL_SCAN);
            SmgrRelation s = plain.create(1, ForkNumber.MAIN, 3);
            int c = plain.pool.read(s, ForkNumber.MAIN, 1, ReadMode.NORMAL);
            plain.pool.lockShared(c);
            plain.pool.hintsAreLogged(true);
            plain.pool.markDirtyHint(c, true);
            assertEquals(
                    0, plain.pool.descriptors.state(c) & BufferState.DIRTY, "wal_log_hints is on");
            plain.pool.hintsAreLogged(false);
            plain.pool.markDirtyHint(c, true);
            assertNotEquals(0, plain.pool.descriptors.state(c) & BufferState.DIRTY);
            plain.pool.unlock(c);
            plain.pool.release(c);
        }
    }

    @Test
    void flushRelationAndFlushDatabaseWriteTheirPagesOnly() throws Exception {
        Files.createDirectories(directory.resolve("base/6"));
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 3);
        f.create(1, ForkNumber.FSM, 3);
        SmgrRelation s = f.create(2, ForkNumber.MAIN, 3);
        SmgrRelation other = f.smgr.open(PoolFixture.SPC, 6, 1);
        other.create(ForkNumber.MAIN, false);
        int b = f.pool.extend(other, ForkNumber.MAIN, true);
        f.stamp(b, 1, 0, 5);
        f.pool.markDirty(b);
        f.pool.unlock(b);
        f.pool.release(b);
        f.change(r, ForkNumber.MAIN, 1, 5);
        f.change(r, ForkNumber.FSM, 2, 5);
        f.change(s, ForkNumber.MAIN, 0, 5);
        f.pool.flushRelation(r);
        assertEquals(5, f.versionOnDisk(r, ForkNumber.MAIN, 1));
        assertEquals(5, f.versionOnDisk(r, ForkNumber.FSM, 2));
        assertEquals(0, f.versionOnDisk(s, ForkNumber.MAIN, 0));
        assertEquals(0, f.versionOnDisk(other, ForkNumber.MAIN, 0));
        f.pool.flushDatabase(PoolFixture.DB);
        assertEquals(5, f.versionOnDisk(s, ForkNumber.MAIN, 0));
        assertEquals(0, f.versionOnDisk(other, ForkNumber.MAIN, 0));
        assertEquals(1, f.pool.flushAll());
    }

    @Test
    @DisplayName(
            "C01: a dirty page whose file is gone fails the checkpoint by name, each time, and makes no file")
    void aPlantedLeftoverFailsTheCheckpointLoudly() throws Exception {
        SmgrRelation r = f.create(16390, ForkNumber.MAIN, 3);
        f.change(r, ForkNumber.MAIN, 1, 5);
        Path file = f.file(r, ForkNumber.MAIN);
        f.smgr.close(r);
        Files.delete(file);
        for (int i = 0; i < 3; i++) {
            KernelException e = assertThrows(KernelException.class, () -> f.pool.flushAll());
            assertTrue(e.getMessage().contains("1663/5/16390"), e.getMessage());
            assertTrue(e.getMessage().contains("block=1"), e.getMessage());
            assertTrue(e.getMessage().contains("fork=main"), e.getMessage());
        }
        assertFalse(Files.exists(file));
        f.pool.dropRelations(new SmgrRelation[] {f.relation(16390)}, 1);
        assertEquals(0, f.pool.flushAll());
    }
}
