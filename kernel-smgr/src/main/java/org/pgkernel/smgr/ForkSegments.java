package org.pgkernel.smgr;

import java.util.Arrays;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DamagedDataException;

/**
 * A fork's open segment files, and what is done to one of them or to several.
 *
 * <p>On disk a fork is a run of full segments, one that is not full (it may be empty), and then
 * perhaps inactive ones of length zero, which a truncation left and which count as absent. Open is
 * a prefix of the first two kinds, as far as somebody looked. A segment enters it only when its
 * predecessor is full (SMGR-1).
 *
 * <p>The array is changed, and a segment cut, under the monitor of the {@link ForkFiles} that owns
 * this; {@link #open}, {@link #count}, {@link #registerSync} and the arithmetic are for anybody.
 * (PostgreSQL: the MdfdVec array of md.c.)
 */
final class ForkSegments {
    private static final SegmentFile[] NONE = new SegmentFile[0];
    private static final int PAGE = BlockNumber.PAGE_SIZE;

    private final SmgrRelation relation;
    private final ForkNumber fork;
    private final ForkName name;

    /** Read by anybody, replaced under the owner's monitor; never changed in place. */
    private volatile SegmentFile[] open = NONE;

    ForkSegments(SmgrRelation relation, ForkNumber fork, ForkName name) {
        this.relation = relation;
        this.fork = fork;
        this.name = name;
    }

    /** Nobody changes the array. */
    SegmentFile[] open() {
        return open;
    }

    int count() {
        return open.length;
    }

    void append(String path, DiskFile file) {
        SegmentFile[] old = open;
        SegmentFile[] longer = Arrays.copyOf(old, old.length + 1);
        longer[old.length] = new SegmentFile(manager().openFiles(), path, file);
        open = longer;
    }

    /**
     * Lets go of the open segments from {@code first} on; those in use close when they are no
     * longer.
     */
    void closeFrom(int first) {
        SegmentFile[] old = open;
        if (first < old.length) {
            open = first == 0 ? NONE : Arrays.copyOf(old, first);
            for (int number = old.length - 1; number >= first; number--) {
                old[number].retire();
            }
        }
    }

    /** Opens, or makes, the segment after the last open one, which is full. */
    boolean openNext(boolean create) {
        assert blocks(open.length - 1) == manager().segmentBlocks() : "SMGR-1 " + name.place();
        String next = name.segmentPath(open.length);
        DiskFile file =
                manager()
                        .openFiles()
                        .openFile(next, create ? OpenFiles.OR_CREATE : OpenFiles.IF_EXISTS);
        if (file == null) {
            return false;
        }
        if (create) {
            registerDirectory();
        }
        append(next, file);
        return true;
    }

    /**
     * The size on disk (SMGR-2); opens all active segments; the first one is open. Starts at the
     * last open one, whose predecessors were full when it was opened; an empty one makes it look
     * below, since somebody else may have truncated. (PostgreSQL: mdnblocks.)
     */
    int probe() {
        int full = manager().segmentBlocks();
        int last = open.length - 1;
        int size = blocks(last);
        while (size == 0 && last > 0) {
            int below = blocks(last - 1);
            if (below == full) {
                return last * full;
            }
            closeFrom(last);
            last--;
            size = below;
        }
        while (size == full && openNext(false)) {
            last++;
            size = blocks(last);
        }
        long total = (long) last * full + size;
        if (total >= BlockNumber.toLong(BlockNumber.INVALID)) {
            throw new DamagedDataException(
                    "a fork cannot have " + total + " blocks: " + name.place());
        }
        return (int) total;
    }

    /**
     * Whole blocks of an open segment; a piece of a block at the end does not count. (PostgreSQL:
     * _mdnblocks.)
     */
    int blocks(int number) {
        SegmentFile segment = open[number];
        if (segment.pin() != SegmentFile.PINNED) {
            throw name.missing(segment.path());
        }
        long size;
        try {
            size = segment.file().size() / PAGE;
        } finally {
            segment.unpin();
        }
        if (size > manager().segmentBlocks()) {
            throw new DamagedDataException(
                    "a segment has "
                            + size
                            + " blocks, more than "
                            + manager().segmentBlocks()
                            + ": "
                            + name.place()
                            + " file="
                            + segment.path());
        }
        return (int) size;
    }

    /** All active segments are open, and the new size is less than the present one. */
    void truncate(int newBlocks) {
        long keep = BlockNumber.toLong(newBlocks);
        long full = manager().segmentBlocks();
        for (int number = open.length - 1; number >= 0; number--) {
            long prior = number * full;
            if (prior > keep) {
                truncateOne(number, 0);
                closeFrom(number);
            } else if (prior + full > keep) {
                truncateOne(number, keep - prior);
            } else {
                return;
            }
        }
    }

    private void truncateOne(int number, long toBlocks) {
        SegmentFile segment = open[number];
        if (segment.pin() != SegmentFile.PINNED) {
            throw name.missing(segment.path());
        }
        try {
            segment.file().truncate(toBlocks * PAGE);
        } finally {
            segment.unpin();
        }
        registerSync(number);
    }

    /** Queues a sync; a temporary relation need not outlive its server. */
    void registerSync(int segment) {
        if (relation.isTemporary()) {
            return;
        }
        requests()
                .register(
                        relation.spcOid(),
                        relation.dbOid(),
                        relation.relNumber(),
                        fork.ordinal(),
                        segment);
    }

    void registerDirectory() {
        if (!relation.isTemporary()) {
            requests().registerDirectory(relation.spcOid(), relation.dbOid());
        }
    }

    int segmentOf(int block) {
        return Integer.divideUnsigned(block, manager().segmentBlocks());
    }

    int blockInSegment(int block) {
        return Integer.remainderUnsigned(block, manager().segmentBlocks());
    }

    private StorageManager manager() {
        return relation.manager();
    }

    private SyncRequests requests() {
        return relation.manager().syncRequests();
    }
}
