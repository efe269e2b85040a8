package org.pgkernel.bufmgr;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageChecksum;
import org.pgkernel.base.PageVerify;
import org.pgkernel.base.disk.NativeMemory;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;

/**
 * A backend's own pool for the pages of its temporary relations. One thread uses it, so there are
 * no locks and no I/O in progress, the locking read modes lock nothing, and a failure finds nobody
 * else at the page. No WAL speaks of these pages and no checkpoint asks for them: a page is written
 * when its buffer is needed, without a gate, and never synced.
 *
 * <p>Buffers have negative numbers, -1 the first, so that none can be taken for a shared one. They
 * and their memory are made at the first use. (PostgreSQL: localbuf.c.)
 */
public final class LocalBufferPool implements AutoCloseable {
    /** What temp_buffers may be at least: 800 KiB. */
    public static final int MIN_BUFFERS = 100;

    public static final int MAX_BUFFERS = BufferPool.MAX_BUFFERS;

    private final StorageManager smgr;
    private final int backend;
    private final int nbuffers;
    private final boolean checksums;
    private final UnsafeBuffer view = new UnsafeBuffer(0L, 0);

    /** Null until the first use. All state is the owning thread's. */
    private LocalBuffers buffers;

    /** Address of the first block; 0 until the first use. */
    private long blocks;

    LocalBufferPool(StorageManager smgr, int backend, int nbuffers, boolean checksums) {
        this.smgr = smgr;
        this.backend = backend;
        this.nbuffers = nbuffers;
        this.checksums = checksums;
    }

    /**
     * @param backend whose temporary relations these are, see {@link SmgrRelation#backend()}
     * @param nbuffers buffers of 8 KiB (temp_buffers)
     * @param checksums verify on read, set on write
     * @throws RefusedException when a number is out of range
     */
    public static LocalBufferPool open(
            StorageManager smgr, int backend, int nbuffers, boolean checksums) {
        if (nbuffers < MIN_BUFFERS || nbuffers > MAX_BUFFERS) {
            throw new RefusedException(
                    "a backend has from "
                            + MIN_BUFFERS
                            + " to "
                            + MAX_BUFFERS
                            + " local buffers of 8 KiB temp_buffers="
                            + nbuffers);
        }
        if (backend < 0) {
            throw new RefusedException("a backend's number is not negative backend=" + backend);
        }
        return new LocalBufferPool(smgr, backend, nbuffers, checksums);
    }

    public int nbuffers() {
        return nbuffers;
    }

    /** The backend's temporary relation of that number. */
    public SmgrRelation relation(int spcOid, int dbOid, int relNumber) {
        return smgr.open(spcOid, dbOid, relNumber, backend);
    }

    /**
     * Pins the page, reading it if needed; in the zeroing modes a page that is not in the pool
     * becomes zeros. (PostgreSQL: ReadBuffer_common, LocalBufferAlloc.)
     *
     * @throws NoFreeBufferException when every local buffer is pinned
     * @throws DamagedDataException as for a shared page; nothing stays pinned
     * @throws DiskException when the block cannot be read, or a dirty page not be written
     */
    public int read(SmgrRelation relation, ForkNumber fork, int block, ReadMode mode) {
        LocalBuffers own = ready(relation);
        int index = own.find(relation, fork.ordinal(), block);
        if (index >= 0) {
            own.pin(index);
            return ~index;
        }
        index = take(relation, fork, block);
        boolean filled = false;
        try {
            if (mode == ReadMode.ZERO_AND_LOCK || mode == ReadMode.ZERO_AND_CLEANUP_LOCK) {
                page(index).setMemory(0, Page.SIZE, (byte) 0);
            } else {
                readPage(index, relation, fork, block, mode == ReadMode.ZERO_ON_ERROR);
            }
            filled = true;
        } finally {
            if (!filled) {
                own.forget(index);
            }
        }
        return ~index;
    }

    /**
     * Pins up to {@code count} neighbouring blocks, reading those that are missing together; fails
     * as {@link BufferPool#readMany} does.
     *
     * @param to gets the buffers, in block order, each pinned
     * @return blocks pinned, at least one: no more than a quarter of the buffers, nor than are free
     */
    public int readMany(
            SmgrRelation relation, ForkNumber fork, int block, int count, ReadMode mode, int[] to) {
        assert mode != ReadMode.ZERO_AND_LOCK && mode != ReadMode.ZERO_AND_CLEANUP_LOCK;
        ready(relation);
        long room = BlockNumber.toLong(BlockNumber.INVALID) - BlockNumber.toLong(block);
        int wanted = (int) Math.min(Math.min(count, Math.max(1, nbuffers / 4)), room);
        int done = 0;
        boolean read = false;
        try {
            while (done < wanted) {
                int next = advance(relation, fork, block, mode, to, done, wanted);
                if (next == done) {
                    break;
                }
                done = next;
            }
            read = true;
            return done;
        } finally {
            for (int i = 0; !read && i < done; i++) {
                buffers.unpin(~to[i]);
            }
        }
    }

    /** Pins the next block if it is here; else reads it with its neighbours. @return pinned now */
    private int advance(
            SmgrRelation relation,
            ForkNumber fork,
            int block,
            ReadMode mode,
            int[] to,
            int done,
            int wanted) {
        int resident = buffers.find(relation, fork.ordinal(), block + done);
        if (resident >= 0) {
            buffers.pin(resident);
            to[done] = ~resident;
            return done + 1;
        }
        int limit = Math.min(wanted, done + VectoredReader.MAX_RUN);
        int end = done;
        boolean gathered = false;
        try {
            while (end < limit && buffers.find(relation, fork.ordinal(), block + end) < 0) {
                int index = takeOrNone(relation, fork, block + end, end > 0);
                if (index < 0) {
                    break;
                }
                to[end++] = ~index;
            }
            gathered = true;
        } finally {
            for (int i = done; !gathered && i < end; i++) {
                buffers.forget(~to[i]);
            }
        }
        fill(relation, fork, block, mode == ReadMode.ZERO_ON_ERROR, to, done, end);
        return end;
    }

    /**
     * Reads and checks a run. When a page is at fault the good ones stay, unpinned, and the bad
     * ones go.
     */
    private void fill(
            SmgrRelation relation,
            ForkNumber fork,
            int block,
            boolean zeroOnError,
            int[] to,
            int from,
            int end) {
        int at = from;
        boolean filled = false;
        try {
            int whole = end - from < 2 ? 0 : readRun(relation, fork, block + from, to, from, end);
            KernelException failure = null;
            for (; at < end; at++) {
                try {
                    if (at - from < whole) {
                        checkPage(~to[at], relation, fork, block + at, zeroOnError);
                    } else {
                        readPage(~to[at], relation, fork, block + at, zeroOnError);
                    }
                } catch (KernelException e) {
                    buffers.forget(~to[at]);
                    if (failure == null) {
                        failure = e;
                    } else {
                        failure.addSuppressed(e);
                    }
                }
            }
            if (failure != null) {
                throw failure;
            }
            filled = true;
        } finally {
            for (int i = from; !filled && i < end; i++) {
                if (i >= at) {
                    buffers.forget(~to[i]);
                } else if (buffers.isPinned(~to[i])) {
                    buffers.unpin(~to[i]);
                }
            }
        }
    }

    private int readRun(
            SmgrRelation relation, ForkNumber fork, int block, int[] to, int from, int end) {
        long[] addresses = BackendScratch.mine().addresses;
        for (int i = from; i < end; i++) {
            addresses[i - from] = address(~to[i]);
        }
        try {
            return relation.readMany(fork, block, addresses, 0, end - from);
        } catch (DiskException e) {
            return 0; // one by one, then: the error will name the block
        }
    }

    /**
     * Adds a zero page at the fork's end.
     *
     * @throws DamagedDataException when pool or file hold data there; nothing is overwritten
     */
    public int extend(SmgrRelation relation, ForkNumber fork) {
        int[] buffer = BackendScratch.mine().buffers;
        extendBy(relation, fork, 1, buffer);
        return buffer[0];
    }

    /**
     * Adds up to {@code count} zero pages at the fork's end, by one write. (As PostgreSQL 16:
     * ExtendBufferedRelLocal.)
     *
     * @param to gets the buffers, in block order, each pinned
     * @return pages added, at least one: no more than a quarter of the buffers, nor than are free
     */
    public int extendBy(SmgrRelation relation, ForkNumber fork, int count, int[] to) {
        LocalBuffers own = ready(relation);
        int block = relation.nblocks(fork);
        long room = BlockNumber.toLong(BlockNumber.INVALID) - BlockNumber.toLong(block);
        if (room == 0) {
            throw new RefusedException(
                    "the fork has all the blocks that a fork can have "
                            + place(relation, fork, block));
        }
        int wanted = (int) Math.min(Math.min(count, Math.max(1, nbuffers / 4)), room);
        int claimed = 0;
        boolean extended = false;
        try {
            claimed = claim(relation, fork, block, wanted, to);
            int inTheWay =
                    relation.firstInTheWay(
                            fork, block, claimed, BackendScratch.mine().copyAddress());
            if (inTheWay != BlockNumber.INVALID) {
                relation.forgetSizes();
                throw new DamagedDataException(
                        "the file holds data past the end of the fork "
                                + place(relation, fork, inTheWay));
            }
            relation.zeroExtend(fork, block, claimed, true);
            extended = true;
            return claimed;
        } finally {
            for (int i = 0; !extended && i < claimed; i++) {
                own.giveUp(~to[i]);
            }
        }
    }

    /** Pins zero pages for the blocks from {@code block} on, one at least; none when it fails. */
    private int claim(SmgrRelation relation, ForkNumber fork, int block, int wanted, int[] to) {
        int claimed = 0;
        boolean ended = false;
        try {
            while (claimed < wanted) {
                int index = buffers.find(relation, fork.ordinal(), block + claimed);
                if (index >= 0) {
                    refuseData(index, relation, fork, block + claimed);
                    buffers.pin(index);
                } else {
                    index = takeOrNone(relation, fork, block + claimed, claimed > 0);
                    if (index < 0) {
                        break;
                    }
                    page(index).setMemory(0, Page.SIZE, (byte) 0);
                }
                to[claimed++] = ~index;
            }
            ended = true;
            return claimed;
        } finally {
            for (int i = 0; !ended && i < claimed; i++) {
                buffers.giveUp(~to[i]);
            }
        }
    }

    /** A page past the end may be there if it is zeros, whose place was never allocated. */
    private void refuseData(int index, SmgrRelation relation, ForkNumber fork, int block) {
        if (!PageVerify.isAllZero(page(index))) {
            relation.forgetSizes();
            throw new DamagedDataException(
                    "the pool holds data past the end of the fork " + place(relation, fork, block));
        }
    }

    private int takeOrNone(SmgrRelation relation, ForkNumber fork, int block, boolean orNone) {
        try {
            return take(relation, fork, block);
        } catch (NoFreeBufferException e) {
            if (orNone) {
                return -1;
            }
            throw e;
        }
    }

    /** A buffer for the block, pinned, tagged, its bytes anything; its old page was written. */
    private int take(SmgrRelation relation, ForkNumber fork, int block) {
        int victim = buffers.victim();
        if (victim < 0) {
            throw new NoFreeBufferException(
                    "no empty local buffer: all "
                            + nbuffers
                            + " of the backend are in use temp_buffers="
                            + nbuffers
                            + " backend="
                            + backend);
        }
        if (buffers.isDirty(victim)) {
            write(victim); // when it fails the page stays where it was, dirty
        }
        buffers.rename(victim, relation, fork.ordinal(), block);
        return victim;
    }

    private void readPage(
            int index, SmgrRelation relation, ForkNumber fork, int block, boolean zeroOnError) {
        try {
            relation.read(fork, block, address(index));
        } catch (DiskException e) {
            throw named("could not read a page ", relation, fork, block, e);
        }
        checkPage(index, relation, fork, block, zeroOnError);
    }

    private void checkPage(
            int index, SmgrRelation relation, ForkNumber fork, int block, boolean zeroOnError) {
        UnsafeBuffer page = page(index);
        if (!PageVerify.isValid(page, block, checksums)) {
            if (!zeroOnError) {
                throw new DamagedDataException(
                        PageVerify.whyInvalid(page, block, checksums)
                                + " "
                                + place(relation, fork, block));
            }
            page.setMemory(0, Page.SIZE, (byte) 0);
        }
    }

    /** The checksum may be set in place: nobody else sets hints meanwhile. */
    private void write(int index) {
        int block = buffers.block(index);
        ForkNumber fork = ForkNumber.of(buffers.fork(index));
        SmgrRelation relation = relation(buffers.spc(index), buffers.db(index), buffers.rel(index));
        UnsafeBuffer page = page(index);
        if (checksums && !Page.isNew(page)) {
            Page.setChecksum(page, PageChecksum.compute(page, block));
        }
        try {
            relation.write(fork, block, address(index), true);
        } catch (DiskException e) {
            throw named("could not write a dirty page ", relation, fork, block, e);
        }
        buffers.setDirty(index, false);
    }

    /** One more pin on a buffer that is pinned. */
    public void pinAgain(int buffer) {
        buffers.pinAgain(~buffer);
    }

    /** Gives up a pin. */
    public void release(int buffer) {
        buffers.unpin(~buffer);
    }

    /** The page of a pinned buffer was changed. (PostgreSQL: MarkLocalBufferDirty.) */
    public void markDirty(int buffer) {
        assert buffers.isPinned(~buffer) : "page marked dirty without a pin";
        buffers.setDirty(~buffer, true);
    }

    /** Address of the page's first byte. */
    public long pageAddress(int buffer) {
        return address(~buffer);
    }

    /** Points {@code page} at the page. */
    public void wrap(int buffer, UnsafeBuffer page) {
        page.wrap(address(~buffer), Page.SIZE);
    }

    /** Block number of a pinned buffer. */
    public int block(int buffer) {
        return buffers.block(~buffer);
    }

    /**
     * Tells the system that the block will be read, unless it is here. (PostgreSQL:
     * PrefetchLocalBuffer.)
     *
     * @return true when it was told
     */
    public boolean prefetch(SmgrRelation relation, ForkNumber fork, int block) {
        if (ready(relation).find(relation, fork.ordinal(), block) >= 0) {
            return false;
        }
        relation.prefetch(fork, block);
        return true;
    }

    /**
     * Writes the relation's dirty pages, so that its files may be read by other means. (PostgreSQL:
     * FlushRelationBuffers.) @return pages written
     */
    public int flushRelation(SmgrRelation relation) {
        LocalBuffers own = ready(relation);
        int written = 0;
        for (int index = 0; index < own.used(); index++) {
            if (own.isDirty(index) && own.isOf(index, relation)) {
                write(index);
                written++;
            }
        }
        return written;
    }

    /**
     * Throws away, unwritten, a fork's pages from {@code firstBlock} on; looks at every buffer that
     * was ever used. (PostgreSQL: DropRelFileNodeLocalBuffers.)
     *
     * @throws RefusedException when such a page is pinned; then all are still there
     */
    public void dropFork(SmgrRelation relation, ForkNumber fork, int firstBlock) {
        drop(relation, fork.ordinal(), firstBlock);
    }

    /** The same for all forks and blocks. (PostgreSQL: DropRelFileNodeAllLocalBuffers.) */
    public void dropRelation(SmgrRelation relation) {
        drop(relation, ANY_FORK, 0);
    }

    private static final int ANY_FORK = -1;

    private void drop(SmgrRelation relation, int fork, int firstBlock) {
        LocalBuffers own = ready(relation);
        for (int index = 0; index < own.used(); index++) {
            if (own.isOf(index, relation, fork, firstBlock) && own.isPinned(index)) {
                throw new RefusedException(
                        "a page to be dropped is still pinned "
                                + place(
                                        relation,
                                        ForkNumber.of(own.fork(index)),
                                        own.block(index)));
            }
        }
        for (int index = 0; index < own.used(); index++) {
            if (own.isOf(index, relation, fork, firstBlock)) {
                own.forget(index);
            }
        }
    }

    /** Buffers pinned now, for checks at a transaction's end. (CheckForLocalBufferLeaks.) */
    public int pinnedBuffers() {
        int pinned = 0;
        for (int index = 0; buffers != null && index < buffers.used(); index++) {
            if (buffers.isPinned(index)) {
                pinned++;
            }
        }
        return pinned;
    }

    /** For tests: what holds at rest. */
    void check() {
        if (buffers != null) {
            buffers.check();
        }
    }

    /** Gives the memory back, writing nothing: the relations go with their backend. */
    @Override
    public void close() {
        if (blocks != 0) {
            NativeMemory.release(blocks, (long) nbuffers * Page.SIZE);
            blocks = 0;
            buffers = null;
        }
    }

    private LocalBuffers ready(SmgrRelation relation) {
        assert relation.backend() == backend
                : "not a temporary relation of this backend " + relation;
        if (buffers == null) {
            blocks = NativeMemory.reserve((long) nbuffers * Page.SIZE);
            buffers = new LocalBuffers(nbuffers);
        }
        return buffers;
    }

    private long address(int index) {
        return blocks + (long) index * Page.SIZE;
    }

    private UnsafeBuffer page(int index) {
        view.wrap(address(index), Page.SIZE);
        return view;
    }

    private static String place(SmgrRelation relation, ForkNumber fork, int block) {
        return "rel="
                + relation
                + " fork="
                + Place.fork(fork.ordinal())
                + " block="
                + BlockNumber.toString(block);
    }

    private static DiskException named(
            String what, SmgrRelation relation, ForkNumber fork, int block, DiskException e) {
        DiskException named =
                new DiskException(
                        what + place(relation, fork, block), relation.path(fork), e.errno());
        named.addSuppressed(e);
        return named;
    }
}
