package org.pgkernel.cluster;

import java.time.Clock;
import java.time.Instant;
import java.util.concurrent.ThreadLocalRandom;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.RefusedException;

/**
 * How a new cluster is made. Immutable; start from {@link #defaults}.
 *
 * @param disk where the files are
 * @param walSegmentSize bytes, a power of two from 1 MiB to 1 GiB
 * @param checksums pages carry checksums
 * @param walLogHints pages that only hints have changed are logged once after each checkpoint, as
 *     they are with checksums
 * @param minimalWal rows of a table that the transaction itself has created or truncated are not
 *     logged but made durable before it commits; such WAL is not enough for a standby (wal_level =
 *     minimal)
 * @param systemIdentifier 0 for one of now
 * @param clock for the times in the first checkpoint and the control file
 */
public record CreateOptions(
        Disk disk,
        int walSegmentSize,
        boolean checksums,
        boolean walLogHints,
        boolean minimalWal,
        long systemIdentifier,
        Clock clock) {
    private static final int MIN_SEGMENT = 1 << 20;
    private static final int MAX_SEGMENT = 1 << 30;

    /**
     * @throws RefusedException when no WAL segment can have this size
     */
    public CreateOptions {
        if (Integer.bitCount(walSegmentSize) != 1
                || walSegmentSize < MIN_SEGMENT
                || walSegmentSize > MAX_SEGMENT) {
            throw new RefusedException(
                    "a WAL segment has a power of two of bytes from 1 MiB to 1 GiB wal_segment_size="
                            + walSegmentSize);
        }
    }

    /** 16 MiB segments; checksums. */
    public static CreateOptions defaults() {
        return new CreateOptions(
                new PosixDisk(), 16 << 20, true, false, false, 0, Clock.systemUTC());
    }

    public CreateOptions withDisk(Disk other) {
        return new CreateOptions(
                other, walSegmentSize, checksums, walLogHints, minimalWal, systemIdentifier, clock);
    }

    public CreateOptions withWalSegmentSize(int bytes) {
        return new CreateOptions(
                disk, bytes, checksums, walLogHints, minimalWal, systemIdentifier, clock);
    }

    public CreateOptions withChecksums(boolean on) {
        return new CreateOptions(
                disk, walSegmentSize, on, walLogHints, minimalWal, systemIdentifier, clock);
    }

    public CreateOptions withWalLogHints(boolean on) {
        return new CreateOptions(
                disk, walSegmentSize, checksums, on, minimalWal, systemIdentifier, clock);
    }

    public CreateOptions withMinimalWal(boolean on) {
        return new CreateOptions(
                disk, walSegmentSize, checksums, walLogHints, on, systemIdentifier, clock);
    }

    public CreateOptions withSystemIdentifier(long identifier) {
        return new CreateOptions(
                disk, walSegmentSize, checksums, walLogHints, minimalWal, identifier, clock);
    }

    public CreateOptions withClock(Clock other) {
        return new CreateOptions(
                disk, walSegmentSize, checksums, walLogHints, minimalWal, systemIdentifier, other);
    }

    /** Seconds, microseconds, something of the process. (PostgreSQL: BootStrapXLOG.) */
    long identifier() {
        if (systemIdentifier != 0) {
            return systemIdentifier;
        }
        Instant now = clock.instant();
        return now.getEpochSecond() << 32
                | (long) (now.getNano() / 1000) << 12
                | ThreadLocalRandom.current().nextInt(1 << 12);
    }
}
