package org.pgkernel.recovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;

/**
 * A database goes to another tablespace and comes back, so that a path is used by other files than
 * before, while somebody keeps handles from before the first move.
 */
class DatabaseMoveTest {
    private static final int DB = 5;
    private static final int HERE = 1663;
    private static final int THERE = 20000;
    private static final int REL = 16384;

    @TempDir Path dir;

    private final PosixDisk disk = new PosixDisk();
    private final DatabaseRedo database = new DatabaseRedo();
    private final UnsafeBuffer page = new UnsafeBuffer(0, 0);
    private StorageManager smgr;
    private BufferPool pool;
    private RedoContext context;
    private TestWal wal;

    @BeforeEach
    void open() throws IOException {
        Files.createDirectories(dir.resolve("base/" + DB));
        smgr =
                new StorageManager(
                        disk,
                        dir.toString(),
                        StorageManager.SEGMENT_BLOCKS,
                        SizePolicy.RECOVERY_ONLY,
                        new SyncRequests(disk, dir.toString()));
        smgr.inRecovery(true);
        pool = BufferPool.open(64, smgr, lsn -> {}, false, DropStrategy.ADAPTIVE);
        context = RedoContext.standalone(pool, new FakeCounters());
        wal = new TestWal(disk, dir);
    }

    @AfterEach
    void close() {
        wal.close();
        pool.close();
        smgr.close();
    }

    private void redo(int type, int... data) {
        long lsn = wal.add(RmgrIds.DATABASE, type, 0, RecoveryTest.ints(data));
        try (WalReader reader = wal.reader(lsn)) {
            WalRecord record = reader.next();
            database.redo(record, context);
            assertTrue(context.holdsNothing());
        }
    }

    /** What ALTER DATABASE SET TABLESPACE logs: a copy, then the removal of the original. */
    private void move(int from, int to) {
        redo(DatabaseRedo.CREATE_FILE_COPY, DB, to, DB, from);
        redo(DatabaseRedo.DROP, DB, 1, from);
        assertFalse(Files.exists(path(from)));
        assertTrue(Files.exists(path(to)));
    }

    private Path path(int spc) {
        return dir.resolve(RelFileLocator.databasePath(spc, DB));
    }

    private void extend(SmgrRelation relation, int mark) {
        int buffer = pool.extend(relation, ForkNumber.MAIN, true);
        pool.wrap(buffer, page);
        Page.init(page, 0);
        finish(buffer, mark);
    }

    private void change(SmgrRelation relation, int block, int mark) {
        int buffer = pool.read(relation, ForkNumber.MAIN, block, ReadMode.NORMAL);
        pool.lockExclusive(buffer);
        pool.wrap(buffer, page);
        finish(buffer, mark);
    }

    private void finish(int buffer, int mark) {
        page.putInt(TinyHeap.COUNT, mark);
        pool.markDirty(buffer);
        pool.unlock(buffer);
        pool.release(buffer);
    }

    private int mark(SmgrRelation relation, int block) {
        int buffer = pool.read(relation, ForkNumber.MAIN, block, ReadMode.NORMAL);
        pool.wrap(buffer, page);
        int mark = page.getInt(TinyHeap.COUNT);
        pool.release(buffer);
        return mark;
    }

    private int markInFile(int block) throws IOException {
        byte[] file = Files.readAllBytes(path(HERE).resolve("" + REL));
        return new UnsafeBuffer(file).getInt(block * Page.SIZE + TinyHeap.COUNT);
    }

    @Test
    @DisplayName(
            "C11 (3): a handle from before both moves finds the new file, its size, its pages, and writes to it")
    void whoSleptThroughBothMovesWorksOnTheNewFile() throws IOException {
        SmgrRelation sleeper = smgr.open(HERE, DB, REL);
        sleeper.create(ForkNumber.MAIN, true);
        for (int block = 0; block < 3; block++) {
            extend(sleeper, 10 + block);
        }
        pool.flushAll();
        assertEquals(3, sleeper.nblocks(ForkNumber.MAIN));
        move(HERE, THERE);
        // Changes there: a page that was in the pool under the old path, and new ones.
        SmgrRelation moved = smgr.open(THERE, DB, REL);
        change(moved, 0, 20);
        extend(moved, 23);
        extend(moved, 24);
        move(THERE, HERE);
        assertEquals(5, sleeper.nblocks(ForkNumber.MAIN), "the size of before is forgotten");
        assertEquals(20, mark(sleeper, 0), "the page of before is gone from the pool");
        assertEquals(24, mark(sleeper, 4));
        change(sleeper, 1, 31);
        pool.flushAll();
        assertEquals(31, markInFile(1), "not into the file that is gone");
        int buffer = pool.read(sleeper, ForkNumber.MAIN, 2, ReadMode.NORMAL);
        pool.wrap(buffer, page);
        page.putInt(TinyHeap.COUNT, 32);
        sleeper.write(ForkNumber.MAIN, 2, page.addressOffset(), false);
        pool.release(buffer);
        assertEquals(32, markInFile(2), "nor around the pool");
        assertFalse(Files.exists(path(THERE)));
        smgr.syncRequests().process();
        assertEquals(0, smgr.syncRequests().pending());
    }

    @Test
    @DisplayName("C11 (3): no sync request and no dirty page of the old place is left behind")
    void whatWasPendingForTheOldPlaceIsCancelled() throws IOException {
        SmgrRelation here = smgr.open(HERE, DB, REL);
        here.create(ForkNumber.MAIN, true);
        extend(here, 1);
        pool.flushAll();
        change(here, 0, 2);
        move(HERE, THERE);
        SmgrRelation there = smgr.open(THERE, DB, REL);
        assertEquals(2, mark(there, 0), "what was only in the pool moved, too");
        change(there, 0, 3);
        pool.flushAll();
        change(there, 0, 4);
        redo(DatabaseRedo.DROP, DB, 1, THERE);
        assertEquals(0, pool.flushAll());
        assertEquals(0, smgr.syncRequests().pending());
        smgr.syncRequests().process();
        assertFalse(Files.exists(path(THERE)));
    }

    @Test
    @DisplayName("C11 (2): after a drop a database of the same number has its own files only")
    void aDatabaseOfTheSameNumberIsAnotherOne() throws IOException {
        SmgrRelation old = smgr.open(HERE, DB, REL);
        old.create(ForkNumber.MAIN, true);
        for (int block = 0; block < 3; block++) {
            extend(old, 10 + block);
        }
        pool.flushAll();
        change(old, 2, 99);
        redo(DatabaseRedo.DROP, DB, 1, HERE);
        redo(DatabaseRedo.CREATE_WAL_LOG, DB, HERE);
        assertFalse(old.exists(ForkNumber.MAIN));
        SmgrRelation next = smgr.open(HERE, DB, REL);
        next.create(ForkNumber.MAIN, true);
        extend(next, 50);
        assertEquals(1, old.nblocks(ForkNumber.MAIN));
        assertEquals(50, mark(old, 0));
        change(old, 0, 51);
        pool.flushAll();
        assertEquals(51, markInFile(0));
        assertEquals(Page.SIZE, Files.size(path(HERE).resolve("" + REL)));
        smgr.syncRequests().process();
    }
}
