package org.pgkernel.cluster;

import java.nio.file.Path;
import org.pgkernel.base.DbState;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.recovery.Recovery;

/**
 * A checked and locked data directory with its recovery. Closing it writes nothing but removes the
 * lock file.
 */
final class OpenDirectory implements AutoCloseable {
    private final Disk disk;
    private final String path;
    private final boolean crashed;
    private final LockFile lock;
    private final Recovery recovery;

    private OpenDirectory(
            Disk disk, String path, boolean crashed, LockFile lock, Recovery recovery) {
        this.disk = disk;
        this.path = path;
        this.crashed = crashed;
        this.lock = lock;
        this.recovery = recovery;
    }

    /**
     * Checks and reads, then locks: a refusal leaves everything as it was, a stale lock file too.
     */
    static OpenDirectory open(Path dataDirectory, Recovery.Mode mode, ClusterOptions options) {
        Disk disk = options.disk();
        String path = dataDirectory.toAbsolutePath().normalize().toString();
        DirectoryChecks.check(disk, path, mode);
        Recovery recovery = Recovery.open(disk, path, mode, options.forRecovery(path));
        try {
            DbState state = recovery.foundState();
            boolean crashed =
                    state != DbState.SHUTDOWNED && state != DbState.SHUTDOWNED_IN_RECOVERY;
            LockFile lock = LockFile.take(disk, path, options.clock());
            try {
                recovery.requireUnchanged();
                return new OpenDirectory(disk, path, crashed, lock, recovery);
            } catch (RuntimeException | Error e) {
                lock.close();
                throw e;
            }
        } catch (RuntimeException | Error e) {
            recovery.close();
            throw e;
        }
    }

    /** The same without the lock: nothing is written. */
    static void check(Path dataDirectory, Recovery.Mode mode, ClusterOptions options) {
        String path = dataDirectory.toAbsolutePath().normalize().toString();
        DirectoryChecks.check(options.disk(), path, mode);
        Recovery.open(options.disk(), path, mode, options.forRecovery(path)).close();
    }

    /** The first changes: files of the last server that redo must not meet. */
    void begin() {
        StartupCleanup.always(disk, path);
        if (crashed) {
            StartupCleanup.afterCrash(disk, path);
        }
        recovery.begin();
    }

    Recovery recovery() {
        return recovery;
    }

    @Override
    public void close() {
        try {
            recovery.close();
        } finally {
            lock.close();
        }
    }
}
