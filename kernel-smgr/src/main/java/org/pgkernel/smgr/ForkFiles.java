package org.pgkernel.smgr;

import org.agrona.UnsafeApi;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.RefusedException;

/**
 * One fork: its segment files and its remembered size.
 *
 * <p>This object's monitor is the fork's extension lock: whatever changes the files' number or
 * length, {@link #segments} or {@link #size} holds it, probing for the size included. Reading and
 * writing existing blocks takes a pin on the segment only. (PostgreSQL: md.c, and the caches of
 * SMgrRelationData.)
 */
final class ForkFiles {
    /** What to do about a segment that is not there. */
    private enum Absent {
        /** An error. (PostgreSQL: EXTENSION_FAIL.) */
        FAIL,
        /**
         * In recovery make it, filling up the lower ones; else an error. (EXTENSION_FAIL |
         * EXTENSION_CREATE_RECOVERY.)
         */
        CREATE_IN_RECOVERY,
        /** Make it, filling up the lower ones; the first one must exist. (EXTENSION_CREATE.) */
        CREATE,
        /** No segment. (EXTENSION_RETURN_NULL.) */
        PASS
    }

    private static final int PAGE = BlockNumber.PAGE_SIZE;

    /** No address: zeros are written. */
    private static final long ZEROS = 0;

    private final SmgrRelation relation;
    private final ForkNumber fork;
    private final ForkName name;

    /** Changed under the monitor, read by anybody. Not empty means "the fork is open". */
    private final ForkSegments segments;

    private final RememberedSize size;

    /**
     * The first segment was looked for and not found, while nobody else makes files. Read by
     * anybody, written under the monitor.
     */
    private volatile boolean knownMissing;

    /**
     * The handle was closed: calls go to the relation's present one. Set under the monitor, so that
     * whoever is inside sees no change; read by anybody.
     */
    private volatile boolean closed;

    ForkFiles(SmgrRelation relation, ForkNumber fork, RememberedSize size) {
        this.relation = relation;
        this.fork = fork;
        this.size = size;
        this.name = new ForkName(relation, fork);
        this.segments = new ForkSegments(relation, fork, name);
    }

    boolean exists() {
        boolean sole = manager().sizesAccurate();
        if (sole && segments.count() > 0) {
            return true;
        }
        if (sole && knownMissing) {
            return false;
        }
        synchronized (this) {
            if (!closed) {
                if (!sole) {
                    segments.closeFrom(0);
                }
                return openFirst();
            }
        }
        return live().exists();
    }

    void create(boolean isRedo) {
        if (isRedo && segments.count() > 0) {
            return;
        }
        synchronized (this) {
            if (!closed) {
                if (!isRedo || segments.count() == 0) {
                    createFirst(isRedo);
                }
                return;
            }
        }
        live().create(isRedo);
    }

    int nblocks() {
        long known = size.answer(manager());
        if (ForkSize.isAccurate(known)) {
            return ForkSize.blocks(known);
        }
        synchronized (this) {
            if (!closed) {
                known = size.answer(manager());
                return ForkSize.isAccurate(known) ? ForkSize.blocks(known) : ask();
            }
        }
        return live().nblocks();
    }

    long rememberedSize() {
        return size.answer(manager());
    }

    synchronized void forget() {
        size.forget();
        knownMissing = false;
    }

    /** Ends this object's use: closes every file, forgets all. Waits for those who are inside. */
    synchronized void close() {
        closed = true;
        release();
    }

    private void release() {
        segments.closeFrom(0);
        forget();
    }

    /** Asks the files for the size and remembers it. */
    private int ask() {
        boolean proof = manager().sizesAccurate();
        int blocks = probe();
        size.is(blocks, proof);
        return blocks;
    }

    void extend(int block, long address, boolean skipSync) {
        refuseBeyondLimit(block, 1);
        synchronized (this) {
            if (!closed) {
                grow(block, 1, address, skipSync);
                return;
            }
        }
        live().extend(block, address, skipSync);
    }

    void zeroExtend(int block, int count, boolean skipSync) {
        assert count >= 0;
        refuseBeyondLimit(block, count);
        synchronized (this) {
            if (!closed) {
                grow(block, count, ZEROS, skipSync);
                return;
            }
        }
        live().zeroExtend(block, count, skipSync);
    }

    /** Adds blocks, zeros if there is no address. Under the monitor. */
    private void grow(int block, int count, long address, boolean skipSync) {
        long known = size.answer(manager());
        int grown = size.grown(block, count, manager().sharedSizes());
        boolean done = false;
        try {
            if (address == ZEROS) {
                writeZeros(block, count, skipSync);
            } else {
                emptyLeftover(block, count, skipSync);
                writePages(block, address, count, skipSync, Absent.CREATE);
            }
            done = true;
        } finally {
            if (!done) {
                size.extensionFailed();
            }
        }
        if (grown == BlockNumber.INVALID) {
            size.forget();
        } else {
            size.is(grown, ForkSize.isAccurate(known));
        }
    }

    void read(int block, long address) {
        SegmentFile segment = pin(block, Absent.CREATE_IN_RECOVERY, false);
        int length;
        try {
            length = segment.file().read(address, PAGE, offset(block));
        } finally {
            segment.unpin();
        }
        if (length != PAGE) {
            if (!manager().inRecovery()) {
                throw new DamagedDataException(
                        "could not read a block, only "
                                + length
                                + " of "
                                + PAGE
                                + " bytes are there: "
                                + name.place(block)
                                + " file="
                                + segment.path());
            }
            // The block was cut off or dropped by a later record; redo gets zeros and goes on.
            UnsafeApi.setMemory(address, PAGE, (byte) 0);
        }
    }

    void write(int block, long address, boolean skipSync) {
        try {
            writePages(block, address, 1, skipSync, Absent.CREATE_IN_RECOVERY);
        } finally {
            // A write that failed may have left a hole before it.
            if (!size.covers(block) || closed) {
                wrote(block);
            }
        }
    }

    /**
     * A block was written that may have made the file longer: the size is in doubt (SMGR-4), the
     * present handle's, too.
     */
    private void wrote(int block) {
        synchronized (this) {
            if (!closed) {
                size.wrote(block);
                return;
            }
        }
        live().wrote(block);
    }

    void startWriteback(int block, int count) {
        assert count >= 0;
        for (int done = 0; done < count; ) {
            int pages =
                    Math.min(
                            count - done,
                            manager().segmentBlocks() - segments.blockInSegment(block + done));
            SegmentFile[] open = segments.open();
            int number = segments.segmentOf(block + done);
            // A segment that nobody opened has not been written lately, and may be on its way out.
            if (number >= open.length || open[number].pin() != SegmentFile.PINNED) {
                return;
            }
            try {
                open[number].file().startWriteback(offset(block + done), (long) pages * PAGE);
            } finally {
                open[number].unpin();
            }
            done += pages;
        }
    }

    void truncate(int newBlocks) {
        synchronized (this) {
            if (!closed) {
                boolean proof = manager().sizesAccurate();
                size.cutting();
                int present = probe();
                if (Integer.compareUnsigned(newBlocks, present) < 0) {
                    segments.truncate(newBlocks);
                    present = newBlocks;
                } else if (newBlocks != present && !manager().inRecovery()) {
                    throw new RefusedException(
                            "could not truncate to "
                                    + BlockNumber.toString(newBlocks)
                                    + " blocks, there are only "
                                    + BlockNumber.toString(present)
                                    + ": "
                                    + name.place());
                }
                size.cut(present, proof);
                return;
            }
        }
        live().truncate(newBlocks);
    }

    void immediateSync() {
        SegmentFile[] active = null;
        synchronized (this) {
            if (!closed) {
                ask();
                active = segments.open();
            }
        }
        if (active == null) {
            live().immediateSync();
            return;
        }
        int end = active.length;
        while (manager().disk().exists(name.segmentPath(end))) {
            end++;
        }
        // From the top, so that an emptied segment is durably empty before a lower one may be
        // durably full again.
        for (int number = end - 1; number >= 0; number--) {
            sync(name.segmentPath(number));
        }
        requests().syncDirectory(relation.spcOid(), relation.dbOid());
    }

    /** Removes the fork's files. (PostgreSQL: mdunlinkfork.) */
    void unlink(boolean isRedo) {
        synchronized (this) {
            if (!closed) {
                boolean missing = manager().sizesAccurate() && knownMissing;
                release();
                ForkRemoval.remove(relation, fork, name, isRedo, missing);
                return;
            }
        }
        live().unlink(isRedo);
    }

    private void writeZeros(int block, int count, boolean skipSync) {
        for (int done = 0; done < count; ) {
            int inSegment = manager().segmentBlocks() - segments.blockInSegment(block + done);
            int pages = Math.min(Math.min(count - done, inSegment), ZeroPages.COUNT);
            emptyLeftover(block + done, pages, skipSync);
            writePages(block + done, ZeroPages.ADDRESS, pages, skipSync, Absent.CREATE);
            done += pages;
        }
    }

    private void writePages(int block, long address, int count, boolean skipSync, Absent absent) {
        SegmentFile segment = pin(block, absent, skipSync);
        try {
            segment.file().write(address, count * PAGE, offset(block));
        } finally {
            segment.unpin();
        }
        if (!skipSync) {
            segments.registerSync(segments.segmentOf(block));
        }
    }

    /** Pins the segment that a block lies in; null when it does not exist, which is no error. */
    SegmentFile pinIfThere(int block) {
        return pin(block, Absent.PASS, false);
    }

    /** How many of {@code count} blocks lie in the first one's segment. */
    int inSameSegment(int block, int count) {
        return Math.min(count, manager().segmentBlocks() - segments.blockInSegment(block));
    }

    /** Where a block begins in its segment file. */
    long offset(int block) {
        return (long) segments.blockInSegment(block) * PAGE;
    }

    /**
     * Pins the block's segment; null only with {@link Absent#PASS}. Takes no lock when the segment
     * is known.
     */
    private SegmentFile pin(int block, Absent absent, boolean skipSync) {
        int number = segments.segmentOf(block);
        for (; ; ) {
            SegmentFile[] open = segments.open();
            SegmentFile segment =
                    number < open.length
                            ? open[number]
                            : openSegment(number, block, absent, skipSync);
            if (segment == null) {
                return null;
            }
            int result = segment.pin();
            if (result == SegmentFile.PINNED) {
                return segment;
            }
            if (result == SegmentFile.MISSING) {
                if (absent == Absent.PASS) {
                    return null;
                }
                throw name.missing(segment.path());
            }
        }
    }

    /** Opens all segments up to one. (PostgreSQL: _mdfd_getseg.) */
    private SegmentFile openSegment(int number, int block, Absent absent, boolean skipSync) {
        synchronized (this) {
            if (!closed) {
                if (!openFirst()) {
                    if (absent == Absent.PASS) {
                        return null;
                    }
                    throw name.missing(name.path());
                }
                boolean create =
                        absent == Absent.CREATE
                                || absent == Absent.CREATE_IN_RECOVERY && manager().inRecovery();
                while (segments.count() <= number) {
                    int next = segments.count();
                    int below = segments.blocks(next - 1);
                    if (below < manager().segmentBlocks()) {
                        if (absent == Absent.PASS) {
                            return null;
                        }
                        if (!create) {
                            throw name.pastTheEnd(
                                    block,
                                    "segment " + (next - 1) + " has only " + below + " blocks");
                        }
                        fillUp(next - 1, skipSync);
                    }
                    if (!segments.openNext(create)) {
                        if (absent == Absent.PASS) {
                            return null;
                        }
                        throw name.pastTheEnd(block, "there is no segment " + next);
                    }
                }
                return segments.open()[number];
            }
        }
        return live().openSegment(number, block, absent, skipSync);
    }

    /** Makes an open segment full; what is between is a hole. */
    private void fillUp(int number, boolean skipSync) {
        size.forget();
        int last = (number + 1) * manager().segmentBlocks() - 1;
        emptyLeftover(last, 1, skipSync);
        writePages(last, ZeroPages.ADDRESS, 1, skipSync, Absent.FAIL);
    }

    /**
     * Before added blocks make a segment full: empties what a crash may have left of the next one
     * (SMGR-10). Costs a look at the next file once a segment.
     */
    private void emptyLeftover(int block, int count, boolean skipSync) {
        int number = segments.segmentOf(block);
        if (segments.blockInSegment(block) + count < manager().segmentBlocks()) {
            return;
        }
        if (number >= segments.count()) {
            openSegment(number, block, Absent.CREATE, skipSync);
        }
        if (segments.blocks(number) < manager().segmentBlocks()
                && ForkRemoval.emptyLeftover(relation, name.segmentPath(number + 1))) {
            segments.registerSync(number + 1);
        }
    }

    /** Opens the first segment unless it is open. (PostgreSQL: mdopenfork.) */
    private boolean openFirst() {
        if (segments.count() > 0) {
            return true;
        }
        boolean sole = manager().sizesAccurate();
        if (sole && knownMissing) {
            return false;
        }
        DiskFile file = manager().openFiles().openFile(name.path(), OpenFiles.IF_EXISTS);
        if (file == null) {
            knownMissing = sole;
            return false;
        }
        segments.append(name.path(), file);
        return true;
    }

    /** The size on disk; opens all active segments. (PostgreSQL: mdnblocks.) */
    private int probe() {
        if (!openFirst()) {
            throw name.missing(name.path());
        }
        return segments.probe();
    }

    private void createFirst(boolean isRedo) {
        int how = isRedo ? OpenFiles.OR_CREATE : OpenFiles.CREATE;
        DiskFile file;
        try {
            file = manager().openFiles().openFile(name.path(), how);
        } catch (DiskException e) {
            if (e.errno() != DiskException.ENOENT
                    || relation.spcOid() == RelFileLocator.GLOBAL_TABLESPACE) {
                throw e;
            }
            relation.createDatabaseDirectory(isRedo);
            file = manager().openFiles().openFile(name.path(), how);
        }
        segments.registerSync(0);
        segments.registerDirectory();
        segments.closeFrom(0);
        segments.append(name.path(), file);
        knownMissing = false;
        if (!isRedo && manager().sharedSizes()) {
            size.is(0, true);
        } else {
            size.forget();
        }
    }

    private void sync(String path) {
        DiskFile file;
        try {
            file = manager().openFiles().openFile(path, OpenFiles.IF_EXISTS);
            if (file == null) {
                throw name.missing(path);
            }
        } catch (DiskException e) {
            throw requests().stop("an immediate sync failed", e);
        }
        requests().syncNow(file);
    }

    private void refuseBeyondLimit(int block, int count) {
        if (BlockNumber.toLong(block) + count > BlockNumber.toLong(BlockNumber.INVALID)) {
            throw new RefusedException(
                    "a fork cannot grow beyond "
                            + BlockNumber.toString(BlockNumber.INVALID)
                            + " blocks: "
                            + name.place(block));
        }
    }

    private StorageManager manager() {
        return relation.manager();
    }

    private SyncRequests requests() {
        return relation.manager().syncRequests();
    }

    /** The same fork of the relation's present handle; called without the monitor. */
    private ForkFiles live() {
        return relation.files(fork);
    }
}
