package org.pgkernel.cluster;

import org.agrona.concurrent.Agent;
import org.agrona.concurrent.NanoClock;
import org.pgkernel.wal.WalInserter;

/**
 * Writes WAL behind the backends' backs: makes asynchronous commits durable now and then, and full
 * pages sooner when the ring fills, so that nobody who inserts has to write first. (PostgreSQL:
 * WalWriterMain.)
 */
final class WalWriterWork implements Agent {
    private final WalInserter wal;
    private final long delayNanos;
    private final long muchUnwritten;
    private final NanoClock clock;
    private long due;

    WalWriterWork(WalInserter wal, RunOptions options) {
        this.wal = wal;
        delayNanos = options.walWriterDelayNanos();
        muchUnwritten = options.walBuffers() / 4;
        clock = options.nanoClock();
        due = clock.nanoTime() + delayNanos;
    }

    @Override
    public int doWork() {
        long now = clock.nanoTime();
        if (now - due < 0 && wal.insertLsn() - wal.writtenLsn() < muchUnwritten) {
            return 0;
        }
        due = now + delayNanos;
        return wal.doWork();
    }

    @Override
    public String roleName() {
        return "WAL writer";
    }
}
