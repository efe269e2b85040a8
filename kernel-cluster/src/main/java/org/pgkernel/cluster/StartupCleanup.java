package org.pgkernel.cluster;

import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.recovery.Directories;
import org.pgkernel.recovery.UnloggedRelations;

/**
 * Files that a server leaves behind and the next one removes before it begins: temporary relations
 * and files, caches that redo would make stale, exported snapshots, notifications. (PostgreSQL:
 * RemovePgTempFiles, RelationCacheInitFileRemove, AsyncShmemInit, DeleteAllExportedSnapshotFiles,
 * RemoveTempXlogFiles.)
 */
final class StartupCleanup {
    private static final String RELCACHE_INIT = "pg_internal.init";
    private static final String TEMP_FILES = "pgsql_tmp";

    private StartupCleanup() {}

    /** What every start does. */
    static void always(Disk disk, String dataDirectory) {
        Directories.removeContents(disk, dataDirectory + "/base/" + TEMP_FILES);
        String tablespaces = dataDirectory + "/pg_tblspc";
        for (String space : disk.list(tablespaces)) {
            Directories.removeContents(
                    disk,
                    tablespaces
                            + "/"
                            + space
                            + "/"
                            + RelFileLocator.TABLESPACE_VERSION_DIRECTORY
                            + "/"
                            + TEMP_FILES);
        }
        disk.unlink(dataDirectory + "/global/" + RELCACHE_INIT);
        for (String directory : UnloggedRelations.databaseDirectories(disk, dataDirectory)) {
            for (String name : disk.list(directory)) {
                if (name.equals(RELCACHE_INIT) || isTemporaryRelation(name)) {
                    disk.unlink(directory + "/" + name);
                }
            }
        }
        Directories.removeContents(disk, dataDirectory + "/pg_notify");
        Directories.removeContents(disk, dataDirectory + "/pg_snapshots");
        Directories.createAll(disk, dataDirectory + "/pg_wal/archive_status");
    }

    /** What a start after anything but a clean shutdown does besides. */
    static void afterCrash(Disk disk, String dataDirectory) {
        String wal = dataDirectory + "/pg_wal";
        for (String name : disk.list(wal)) {
            if (name.startsWith("xlogtemp.")) {
                disk.unlink(wal + "/" + name);
            }
        }
        disk.unlink(dataDirectory + "/pg_stat/pgstat.stat");
        // The crashed server may have written without syncing; what redo finds on disk must survive
        // a power failure from here on.
        Directories.syncTree(disk, dataDirectory);
    }

    /** {@code t3_16385}, {@code t3_16385_fsm.1}. (PostgreSQL: looks_like_temp_rel_name, fd.c.) */
    static boolean isTemporaryRelation(String name) {
        if (name.isEmpty() || name.charAt(0) != 't') {
            return false;
        }
        int backend = skipDigits(name, 1);
        if (backend == 1 || backend == name.length() || name.charAt(backend) != '_') {
            return false;
        }
        int at = skipDigits(name, backend + 1);
        if (at == backend + 1) {
            return false;
        }
        for (String fork : new String[] {"_fsm", "_vm", "_init"}) {
            if (name.startsWith(fork, at)) {
                at += fork.length();
                break;
            }
        }
        if (at < name.length() && name.charAt(at) == '.') {
            int end = skipDigits(name, at + 1);
            if (end == at + 1) {
                return false;
            }
            at = end;
        }
        return at == name.length();
    }

    private static int skipDigits(String name, int from) {
        int i = from;
        while (i < name.length() && name.charAt(i) >= '0' && name.charAt(i) <= '9') {
            i++;
        }
        return i;
    }
}
