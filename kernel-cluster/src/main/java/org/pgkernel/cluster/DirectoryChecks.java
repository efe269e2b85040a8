package org.pgkernel.cluster;

import java.nio.charset.StandardCharsets;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.DbState;
import org.pgkernel.base.FilenodeMap;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.recovery.Directories;
import org.pgkernel.recovery.Recovery;

/**
 * Whether a directory may be opened at all. Reads only; each refusal is one sentence. (PostgreSQL:
 * checkDataDir, checkControlFile, ValidatePgVersion.)
 */
final class DirectoryChecks {
    private static final String MAJOR = "15";

    private DirectoryChecks() {}

    static void check(Disk disk, String dataDirectory, Recovery.Mode mode) {
        if (!disk.isDirectory(dataDirectory)) {
            throw new RefusedException("there is no such directory: file=" + dataDirectory);
        }
        checkIsWhole(disk, dataDirectory);
        checkVersion(disk, dataDirectory);
        checkCatalogVersion(disk, dataDirectory);
        LockFile.check(disk, dataDirectory);
        if (disk.exists(dataDirectory + "/backup_label")) {
            throw new RefusedException(
                    "the directory is a base backup, which is not covered yet: file="
                            + dataDirectory
                            + "/backup_label");
        }
        ControlFile control = ControlFile.read(disk, dataDirectory);
        checkWalDirectory(disk, dataDirectory + "/pg_wal", control.xlogSegSize());
        if (control.backupStartPoint() != Lsn.INVALID || control.backupEndRequired()) {
            throw new RefusedException(
                    "the directory is a base backup whose end was not reached, which is not covered yet: file="
                            + ControlFile.path(dataDirectory));
        }
        if (mode == Recovery.Mode.CRASH) {
            refuseStandby(disk, dataDirectory, control);
        } else {
            requireColdCopy(dataDirectory, control);
        }
    }

    /** The control file is the last that a new cluster gets. */
    private static void checkIsWhole(Disk disk, String dataDirectory) {
        String control = ControlFile.path(dataDirectory);
        if (disk.exists(dataDirectory + "/PG_VERSION") && !disk.exists(control)) {
            throw new RefusedException(
                    "this is not a PostgreSQL data directory, it has no control file; if it was being created, that is not finished: file="
                            + control);
        }
    }

    private static void checkVersion(Disk disk, String dataDirectory) {
        String path = dataDirectory + "/PG_VERSION";
        byte[] bytes = Directories.readFile(disk, path, 64);
        if (bytes == null) {
            throw new RefusedException(
                    "this is not a PostgreSQL data directory, it has no PG_VERSION: file=" + path);
        }
        String version = new String(bytes, StandardCharsets.US_ASCII).strip();
        if (!version.equals(MAJOR)) {
            String shown =
                    version.length() <= 8
                                    && version.chars()
                                            .allMatch(c -> c >= '0' && c <= '9' || c == '.')
                                    && !version.isEmpty()
                            ? "PostgreSQL " + version
                            : "no version that can be read";
            throw new RefusedException(
                    "the directory belongs to "
                            + shown
                            + ", only "
                            + MAJOR
                            + " is served: file="
                            + path);
        }
    }

    /** PostgreSQL's catalogue goes with its major version, ours has a version of its own. */
    private static void checkCatalogVersion(Disk disk, String dataDirectory) {
        if (disk.exists(dataDirectory + "/global/" + FilenodeMap.NAME)
                || !disk.exists(ClusterCreation.catalogFile(dataDirectory, OwnCatalog.CLASS))) {
            return;
        }
        String path = ClusterCreation.catalogVersion(dataDirectory);
        byte[] bytes = Directories.readFile(disk, path, 64);
        String found = bytes == null ? "" : new String(bytes, StandardCharsets.US_ASCII).strip();
        if (found.equals(Integer.toString(OwnCatalog.VERSION))) {
            return;
        }
        String shown =
                found.matches("[0-9]{1,9}") ? "version " + found : "no version that can be read";
        throw new RefusedException(
                "the cluster's catalogue has "
                        + (bytes == null ? "an older version" : shown)
                        + ", only version "
                        + OwnCatalog.VERSION
                        + " is served: file="
                        + path);
    }

    /**
     * A file of another size than the control file says can be a torn copy; all of one other
     * possible size are another cluster's.
     */
    private static void checkWalDirectory(Disk disk, String wal, int segmentSize) {
        if (!disk.isDirectory(wal)) {
            throw new RefusedException("the directory has no WAL: file=" + wal);
        }
        long other = 0;
        for (String name : disk.list(wal)) {
            if (name.length() == 24
                    && name.chars().allMatch(c -> c >= '0' && c <= '9' || c >= 'A' && c <= 'F')) {
                long size = sizeOf(disk, wal + "/" + name);
                if (size == segmentSize) {
                    return;
                }
                other = size;
            }
        }
        if (other >= 1 << 20 && Long.bitCount(other) == 1) {
            throw new RefusedException(
                    "the WAL segments have "
                            + other
                            + " bytes where the control file says "
                            + segmentSize
                            + ": file="
                            + wal);
        }
    }

    private static long sizeOf(Disk disk, String path) {
        DiskFile file = disk.openReadOnly(path);
        if (file == null) {
            return 0;
        }
        try (file) {
            return file.size();
        }
    }

    private static void refuseStandby(Disk disk, String dataDirectory, ControlFile control) {
        for (String name : new String[] {"standby.signal", "recovery.signal"}) {
            if (disk.exists(dataDirectory + "/" + name)) {
                throw new RefusedException(
                        "the directory is a standby's, crash recovery is not for it: file="
                                + dataDirectory
                                + "/"
                                + name);
            }
        }
        if (control.state() == DbState.IN_ARCHIVE_RECOVERY
                || control.state() == DbState.SHUTDOWNED_IN_RECOVERY) {
            throw new RefusedException(
                    "the cluster was left "
                            + control.state().text()
                            + ", so it is a standby's and must be opened as one: file="
                            + ControlFile.path(dataDirectory));
        }
    }

    private static void requireColdCopy(String dataDirectory, ControlFile control) {
        switch (control.state()) {
            case SHUTDOWNED, SHUTDOWNED_IN_RECOVERY, IN_ARCHIVE_RECOVERY -> {}
            case STARTUP, SHUTDOWNING, IN_CRASH_RECOVERY, IN_PRODUCTION ->
                    throw new RefusedException(
                            "a standby begins with the copy of a cluster that was shut down, this one is \""
                                    + control.state().text()
                                    + "\": file="
                                    + ControlFile.path(dataDirectory));
        }
    }
}
