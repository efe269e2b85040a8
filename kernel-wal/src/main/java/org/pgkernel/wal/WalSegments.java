package org.pgkernel.wal;

import java.util.concurrent.locks.ReentrantLock;
import org.pgkernel.base.disk.Disk;

/**
 * Old segments: removed, or given the name of one that will be needed, which saves filling it with
 * zeros. A recycled file keeps its old bytes; their page addresses tell the reader that they are
 * old, and zeros behind the last record keep them out (WAL-9).
 *
 * <p>Any thread, one at a time. (PostgreSQL: RemoveOldXlogFiles, RemoveXlogFile.)
 */
public final class WalSegments {
    private static final String PARTIAL = ".partial";

    private final Disk disk;
    private final String directory;
    private final int timeline;
    private final int segmentSize;
    private final ReentrantLock creation;

    WalSegments(
            Disk disk, String directory, int timeline, int segmentSize, ReentrantLock creation) {
        this.disk = disk;
        this.directory = directory;
        this.timeline = timeline;
        this.segmentSize = segmentSize;
        this.creation = creation;
    }

    /**
     * Removes the segments before the one that holds {@code keepFrom}, of every timeline, since a
     * timeline's past is of no more use than our own. The first ones become segments after that of
     * {@code insertLsn} as long as that makes no more than {@code ahead}. Durable on return.
     *
     * @param keepFrom redo point of the last checkpoint, or less when somebody needs more
     * @return segments removed or recycled
     */
    public int removeBefore(long keepFrom, long insertLsn, int ahead) {
        WalRetention.Removal removal =
                remove(
                        WalSegmentName.segmentOf(keepFrom, segmentSize),
                        insertLsn,
                        WalSegmentName.segmentOf(insertLsn, segmentSize) + ahead);
        return removal.removed() + removal.recycled();
    }

    /**
     * As {@link #removeBefore}, by numbers of segments. What is left of a segment that was archived
     * unfinished, a name that ends in {@code .partial}, goes with its segment.
     *
     * @param keep the first that stays
     * @param lastRecycled the last that an old one may become
     */
    WalRetention.Removal remove(long keep, long insertLsn, long lastRecycled) {
        long current = WalSegmentName.segmentOf(insertLsn, segmentSize);
        assert keep <= current : "keep " + keep + " of " + current;
        int removed = 0;
        int recycled = 0;
        long next = current + 1;
        for (String name : disk.list(directory).stream().sorted().toList()) {
            boolean isPartial = name.endsWith(PARTIAL);
            WalSegmentName segment =
                    WalSegmentName.parse(
                            isPartial ? name.substring(0, name.length() - PARTIAL.length()) : name,
                            segmentSize);
            if (segment == null || segment.segment() >= keep) {
                continue;
            }
            long after = recycle(directory + "/" + name, next, isPartial ? 0 : lastRecycled);
            if (after == next) {
                removed++;
            } else {
                recycled++;
            }
            next = after;
        }
        if (removed + recycled > 0) {
            disk.syncDirectory(directory);
        }
        return new WalRetention.Removal(removed, recycled);
    }

    /**
     * @return the first segment that may still be wanted
     */
    private long recycle(String path, long from, long last) {
        creation.lock();
        try {
            for (long segment = from; segment <= last; segment++) {
                String target = WalSegmentFile.path(directory, timeline, segment, segmentSize);
                if (!disk.exists(target)) {
                    if (!isWhole(path)) {
                        break;
                    }
                    disk.rename(path, target);
                    return segment + 1;
                }
            }
            disk.unlink(path);
            return from;
        } finally {
            creation.unlock();
        }
    }

    private boolean isWhole(String path) {
        try (var file = disk.openReadOnly(path)) {
            return file != null && file.size() == segmentSize;
        }
    }
}
