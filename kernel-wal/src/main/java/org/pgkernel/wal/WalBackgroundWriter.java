package org.pgkernel.wal;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.NanoClock;

/**
 * Keeps the log's end near the files, so that committers find little to write and inserters find
 * room: a round each delay makes asynchronous commits and whole pages durable; a round before its
 * time, whenever inserters have filled another {@code flushAfterBytes}, writes them and syncs. It
 * also makes the next segment before it is needed.
 *
 * <p>So a commit that went through {@link WalInserter#flushLater} is lost by a crash only within
 * one delay and the round that follows it. PostgreSQL takes up to three delays, since its rounds
 * look at asynchronous commits only when all whole pages are durable.
 *
 * <p>It leads the flush like any committer, and no commit waits for it: with commits that wait, it
 * is of no use but to write ahead. One thread. (PostgreSQL: XLogBackgroundFlush, WalWriterMain.)
 */
public final class WalBackgroundWriter implements Agent {
    /** PostgreSQL's wal_writer_delay, in nanoseconds. */
    public static final long DEFAULT_DELAY = TimeUnit.MILLISECONDS.toNanos(200);

    /** PostgreSQL's wal_writer_flush_after, in bytes. */
    public static final long DEFAULT_FLUSH_AFTER = 1 << 20;

    private final WalInserter wal;
    private final long delayNanos;
    private final long flushAfterBytes;
    private final NanoClock clock;
    private long roundDue;

    /**
     * @param delayNanos between two rounds (PostgreSQL: wal_writer_delay)
     * @param flushAfterBytes more of these complete than written call for a round at once
     *     (PostgreSQL: wal_writer_flush_after)
     */
    public WalBackgroundWriter(
            WalInserter wal, long delayNanos, long flushAfterBytes, NanoClock clock) {
        assert delayNanos > 0 && flushAfterBytes >= WalPageHeader.PAGE_SIZE
                : "delay " + delayNanos + " flush after " + flushAfterBytes;
        this.wal = wal;
        this.delayNanos = delayNanos;
        this.flushAfterBytes = flushAfterBytes;
        this.clock = clock;
        roundDue = clock.nanoTime() + delayNanos;
    }

    @Override
    public String roleName() {
        return "WAL writer";
    }

    /**
     * A round if one is due, else nothing.
     *
     * @return 0 when there was nothing to do
     * @throws org.pgkernel.base.error.KernelStoppedException the log cannot be written any more
     * @throws org.pgkernel.base.error.DiskException the next segment could not be made ahead; all
     *     else was done, and the next round tries again
     */
    @Override
    public int doWork() {
        long now = clock.nanoTime();
        boolean isDue = now - roundDue >= 0;
        if (!isDue && !wal.isFilled(flushAfterBytes)) {
            return 0;
        }
        if (isDue) {
            roundDue = now + delayNanos;
        }
        return wal.backgroundRound(isDue, flushAfterBytes);
    }

    /** Parks the calling thread until a round is due or enough is filled. May return early. */
    public void rest() {
        wal.wakeWhenFilled(Thread.currentThread());
        if (!wal.isFilled(flushAfterBytes)) {
            LockSupport.parkNanos(this, roundDue - clock.nanoTime());
        }
        wal.wakeWhenFilled(null);
    }
}
