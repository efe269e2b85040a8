package org.pgkernel.cluster;

import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.CheckPointRecord;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.DbState;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.recovery.Directories;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.wal.WalWriter;

/**
 * A new data directory in PostgreSQL's layout, shut down, with one database and the empty files of
 * our catalogue in it. No catalogue of PostgreSQL's, so no server of its serves it; its tools for
 * control file and WAL read it.
 *
 * <p>Everything is durable before the control file gets its name, by a rename, as the last step:
 * without it the directory is refused, so a crash leaves either nothing that opens or a whole
 * cluster. (PostgreSQL: initdb.c, BootStrapXLOG.)
 */
final class ClusterCreation {
    /** The database that all tables are in; its number is that of PostgreSQL's "postgres". */
    static final int DATABASE = 5;

    /** (PostgreSQL: FirstNormalObjectId.) */
    static final int FIRST_NORMAL_OID = 16384;

    private static final long FIRST_UNLOGGED_LSN = 1000;
    private static final String NEW_CONTROL = "/global/pg_control.new";

    private static final String[] DIRECTORIES = {
        "global",
        "base",
        "base/" + DATABASE,
        "pg_wal",
        "pg_wal/archive_status",
        "pg_xact",
        "pg_subtrans",
        "pg_multixact",
        "pg_multixact/members",
        "pg_multixact/offsets",
        "pg_commit_ts",
        "pg_dynshmem",
        "pg_logical",
        "pg_logical/mappings",
        "pg_logical/snapshots",
        "pg_notify",
        "pg_replslot",
        "pg_serial",
        "pg_snapshots",
        "pg_stat",
        "pg_stat_tmp",
        "pg_tblspc",
        "pg_twophase"
    };

    /** Logs whose first page is there from the start. (PostgreSQL: BootStrapCLOG and others.) */
    private static final String[] LOGS = {
        "pg_xact/0000", "pg_subtrans/0000", "pg_multixact/offsets/0000", "pg_multixact/members/0000"
    };

    private static final byte[] VERSION = "15\n".getBytes(StandardCharsets.US_ASCII);

    private final Disk disk;
    private final String path;
    private final CreateOptions options;
    private final UnsafeBuffer checkpoint = new UnsafeBuffer(new byte[CheckPointRecord.SIZE]);

    private ClusterCreation(Disk disk, String path, CreateOptions options) {
        this.disk = disk;
        this.path = path;
        this.options = options;
    }

    /**
     * @throws RefusedException when the directory holds anything already
     */
    static void create(String path, CreateOptions options) {
        Disk disk = options.disk();
        if (disk.exists(path) && (!disk.isDirectory(path) || !disk.list(path).isEmpty())) {
            throw new RefusedException(
                    "a cluster is created in a new or an empty directory only: file=" + path);
        }
        new ClusterCreation(disk, path, options).create();
    }

    private void create() {
        Directories.createAll(disk, path);
        for (String directory : DIRECTORIES) {
            disk.createDirectory(path + "/" + directory);
        }
        Directories.writeFile(disk, path + "/PG_VERSION", VERSION);
        Directories.writeFile(disk, path + "/base/" + DATABASE + "/PG_VERSION", VERSION);
        for (String log : LOGS) {
            Directories.writeFile(disk, path + "/" + log, new byte[8192]);
        }
        Directories.writeFile(
                disk,
                catalogVersion(path),
                (OwnCatalog.VERSION + "\n").getBytes(StandardCharsets.US_ASCII));
        for (int rel : new int[] {OwnCatalog.CLASS, OwnCatalog.ATTRIBUTE}) {
            Directories.writeFile(disk, catalogFile(path, rel), new byte[0]);
        }
        long identifier = options.identifier();
        long checkpointLsn = writeFirstSegment(identifier);
        Directories.writeFile(disk, path + NEW_CONTROL, control(identifier, checkpointLsn));
        Directories.syncTree(disk, path);
        disk.syncDirectory(parent(path));
        disk.rename(path + NEW_CONTROL, ControlFile.path(path));
        disk.syncDirectory(path + "/global");
    }

    /** Where a table of the catalogue is. */
    static String catalogFile(String dataDirectory, int rel) {
        return dataDirectory
                + "/"
                + new RelFileLocator(RelFileLocator.DEFAULT_TABLESPACE, DATABASE, rel)
                        .path(ForkNumber.MAIN);
    }

    /** Where the catalogue's version is. */
    static String catalogVersion(String dataDirectory) {
        return dataDirectory + "/base/" + DATABASE + "/" + OwnCatalog.VERSION_FILE;
    }

    private static String parent(String path) {
        int slash = path.lastIndexOf('/');
        return slash <= 0 ? "/" : path.substring(0, slash);
    }

    /** The log begins with segment 1, and with a shutdown checkpoint. @return where that is */
    private long writeFirstSegment(long identifier) {
        int segment = options.walSegmentSize();
        try (WalWriter writer =
                new WalWriter(disk, path + "/pg_wal", 1, segment, identifier, segment, 0, 0)) {
            long redo = writer.nextRecordLsn();
            fillCheckpoint(redo);
            writer.append(
                    new WalRecordBuilder()
                            .begin(RmgrIds.XLOG, 0, TransactionId.INVALID)
                            .data(checkpoint, 0, CheckPointRecord.SIZE));
            writer.flush();
            return redo;
        }
    }

    private void fillCheckpoint(long redo) {
        CheckPointRecord.clear(checkpoint, 0);
        CheckPointRecord.setRedo(checkpoint, 0, redo);
        CheckPointRecord.setThisTimeLineId(checkpoint, 0, 1);
        CheckPointRecord.setPrevTimeLineId(checkpoint, 0, 1);
        CheckPointRecord.setFullPageWrites(checkpoint, 0, true);
        CheckPointRecord.setNextXid(checkpoint, 0, TransactionId.FIRST_NORMAL);
        CheckPointRecord.setNextOid(checkpoint, 0, FIRST_NORMAL_OID);
        CheckPointRecord.setNextMulti(checkpoint, 0, 1);
        CheckPointRecord.setOldestXid(checkpoint, 0, TransactionId.FIRST_NORMAL);
        CheckPointRecord.setOldestXidDb(checkpoint, 0, DATABASE);
        CheckPointRecord.setOldestMulti(checkpoint, 0, 1);
        CheckPointRecord.setOldestMultiDb(checkpoint, 0, DATABASE);
        CheckPointRecord.setTime(checkpoint, 0, options.clock().instant().getEpochSecond());
    }

    /** Parameters are PostgreSQL's defaults: a standby of the cluster would have to match them. */
    private byte[] control(long identifier, long checkpointLsn) {
        ControlFile control = new ControlFile();
        control.setSystemIdentifier(identifier);
        control.setState(DbState.SHUTDOWNED);
        control.setTime(options.clock().instant().getEpochSecond());
        control.setCheckPoint(checkpointLsn);
        control.setCheckPointCopy(checkpoint, 0);
        control.setUnloggedLsn(FIRST_UNLOGGED_LSN);
        control.setXlogSegSize(options.walSegmentSize());
        control.setWalLevel(
                options.minimalWal()
                        ? ControlFile.WAL_LEVEL_MINIMAL
                        : ControlFile.WAL_LEVEL_REPLICA);
        control.setWalLogHints(options.walLogHints());
        control.setMaxConnections(100);
        control.setMaxWorkerProcesses(8);
        control.setMaxWalSenders(10);
        control.setMaxLocksPerXact(64);
        control.setDataChecksumVersion(options.checksums() ? 1 : 0);
        // Guards logins, of which there are none here.
        byte[] nonce = new byte[32];
        new SplittableRandom(identifier).nextBytes(nonce);
        control.setMockAuthenticationNonce(nonce);
        byte[] bytes = new byte[ControlFile.FILE_SIZE];
        control.encode(new UnsafeBuffer(bytes), 0);
        return bytes;
    }
}
