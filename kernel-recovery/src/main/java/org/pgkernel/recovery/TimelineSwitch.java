package org.pgkernel.recovery;

import org.agrona.DirectBuffer;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalRecord;
import org.pgkernel.wal.WalSegmentName;

/**
 * Follows replay from one timeline to the next. (PostgreSQL: ApplyWalRecord, checkTimeLineSwitch,
 * RemoveNonParentXlogFiles.)
 */
final class TimelineSwitch {
    /**
     * Both records that begin a timeline carry 8 bytes, then the new timeline, then the one before.
     */
    private static final int THIS_TIMELINE = 8;

    private static final int PREV_TIMELINE = 12;

    private final TimelineHistory history;
    private final Disk disk;
    private final String walDirectory;
    private final int segmentSize;

    TimelineSwitch(TimelineHistory history, Disk disk, String walDirectory, int segmentSize) {
        this.history = history;
        this.disk = disk;
        this.walDirectory = walDirectory;
        this.segmentSize = segmentSize;
    }

    /**
     * The timeline to which an XLOG record belongs, given that of the record before: the record
     * that begins a timeline is part of it.
     *
     * @throws DamagedDataException when the record leads to a timeline that does not descend from
     *     the present one
     */
    int timelineAfter(WalRecord record, int timeline) {
        int type = record.type();
        if (type != XlogRedo.CHECKPOINT_SHUTDOWN && type != XlogRedo.END_OF_RECOVERY) {
            return timeline;
        }
        if (record.dataLength() < PREV_TIMELINE + 4) {
            throw new DamagedDataException(
                    "XLOG record is too short, "
                            + record.dataLength()
                            + " bytes: lsn="
                            + Lsn.format(record.lsn()));
        }
        DirectBuffer data = record.data();
        int next = data.getInt(THIS_TIMELINE);
        if (next == timeline) {
            return timeline;
        }
        int previous = data.getInt(PREV_TIMELINE);
        if (previous != timeline
                || Integer.compareUnsigned(next, timeline) < 0
                || !contains(next)) {
            throw new DamagedDataException(
                    "WAL changes from timeline "
                            + Integer.toUnsignedString(timeline)
                            + " to "
                            + Integer.toUnsignedString(next)
                            + ", which the record says follows "
                            + Integer.toUnsignedString(previous)
                            + ", and that is not this cluster's history: lsn="
                            + Lsn.format(record.lsn()));
        }
        return next;
    }

    /** Removes what the timelines left behind hold past the switch. */
    void switched(long switchPoint, int newTimeline) {
        removeForeignSegments(disk, walDirectory, switchPoint, newTimeline, segmentSize);
    }

    private boolean contains(int timeline) {
        for (TimelineHistory.Entry entry : history.entries()) {
            if (entry.timeline() == timeline) {
                return true;
            }
        }
        return false;
    }

    /**
     * Removes every segment file of an older timeline that lies after the segment of the switch:
     * preallocated or recycled garbage, or WAL that is no part of our history. A segment that is
     * marked for archiving stays. The directory is durable on return.
     *
     * @return files removed
     */
    static int removeForeignSegments(
            Disk disk, String walDirectory, long switchPoint, int newTimeline, int segmentSize) {
        String last =
                WalSegmentName.fileName(
                        newTimeline,
                        WalSegmentName.segmentOf(switchPoint - 1, segmentSize),
                        segmentSize);
        int removed = 0;
        for (String name : disk.list(walDirectory)) {
            if (WalSegmentName.isSegmentName(name)
                    && name.substring(0, 8).compareTo(last.substring(0, 8)) < 0
                    && name.substring(8).compareTo(last.substring(8)) > 0
                    && !disk.exists(walDirectory + "/archive_status/" + name + ".ready")) {
                disk.unlink(walDirectory + "/" + name);
                removed++;
            }
        }
        if (removed > 0) {
            disk.syncDirectory(walDirectory);
        }
        return removed;
    }
}
