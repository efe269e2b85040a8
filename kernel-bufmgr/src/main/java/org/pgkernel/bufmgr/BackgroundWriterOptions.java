package org.pgkernel.bufmgr;

import java.util.concurrent.TimeUnit;
import org.pgkernel.base.error.RefusedException;

/**
 * The background writer's pace.
 *
 * @param maxPages a round writes at most so many pages; 0: none ever (bgwriter_lru_maxpages)
 * @param multiplier so many times the buffers lately wanted in a round are kept ready
 *     (bgwriter_lru_multiplier)
 * @param delayNanos from round to round (bgwriter_delay)
 * @param flushAfterPages after so many pages the system is told to write them to the disk; 0: never
 *     (bgwriter_flush_after)
 */
public record BackgroundWriterOptions(
        int maxPages, double multiplier, long delayNanos, int flushAfterPages) {
    /** PostgreSQL's: 100 pages, 2.0, 200 ms, 512 kB. */
    public static final BackgroundWriterOptions DEFAULT =
            new BackgroundWriterOptions(100, 2.0, TimeUnit.MILLISECONDS.toNanos(200), 64);

    /**
     * @throws RefusedException when a number is out of range
     */
    public BackgroundWriterOptions {
        if (maxPages < 0
                || !(multiplier >= 0)
                || delayNanos <= 0
                || flushAfterPages < 0
                || flushAfterPages > WriteBackHints.MOST) {
            throw new RefusedException(
                    "out of range: bgwriter_lru_maxpages="
                            + maxPages
                            + " bgwriter_lru_multiplier="
                            + multiplier
                            + " bgwriter_delay_nanos="
                            + delayNanos
                            + " bgwriter_flush_after_pages="
                            + flushAfterPages);
        }
    }
}
