package org.pgkernel.wal;

import java.util.List;
import org.pgkernel.base.disk.Disk;

/** The timelines that lead to the present one. (PostgreSQL: timeline.c.) */
public final class TimelineHistory {
    /**
     * @param timeline unsigned id
     * @param begin first position of it, inclusive
     * @param end first position past it; 0 for the newest
     */
    public record Entry(int timeline, long begin, long end) {}

    private TimelineHistory() {}

    /** A history of one timeline. */
    public static TimelineHistory of(int timeline) {
        throw new AssertionError("stub");
    }

    /** Reads {@code pg_wal/XXXXXXXX.history}; timeline 1 needs none. */
    public static TimelineHistory read(Disk disk, String walDirectory, int timeline) {
        throw new AssertionError("stub");
    }

    /** The next id for which no history file exists. (PostgreSQL: findNewestTimeLine + 1.) */
    public static int nextFree(Disk disk, String walDirectory, int timeline) {
        throw new AssertionError("stub");
    }

    /** Writes the history file of {@code newTimeline}, which leaves this one at {@code switchPoint}; durable on return. (PostgreSQL: writeTimeLineHistory.) */
    public void write(Disk disk, String walDirectory, int newTimeline, long switchPoint, String reason) {
        throw new AssertionError("stub");
    }

    public int timelineAt(long lsn) {
        throw new AssertionError("stub");
    }

    public int newest() {
        throw new AssertionError("stub");
    }

    public List<Entry> entries() {
        throw new AssertionError("stub");
    }
}
