package org.pgkernel.recovery;

import java.nio.charset.StandardCharsets;
import org.agrona.DirectBuffer;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.wal.WalRecord;

/**
 * Whole databases: made by copying a directory, made empty (the pages follow in records of their
 * own), dropped. Files change at once and are durable when redo returns. (PostgreSQL: dbase_redo,
 * dbcommands.c.)
 *
 * <pre>
 *  CREATE_FILE_COPY  0 db | 4 tablespace | 8 source db | 12 source tablespace
 *  CREATE_WAL_LOG    0 db | 4 tablespace
 *  DROP              0 db | 4 number of tablespaces | 8 tablespaces, 4 each
 * </pre>
 */
final class DatabaseRedo extends AbstractResourceManager {
    static final int CREATE_FILE_COPY = 0x00;
    static final int CREATE_WAL_LOG = 0x10;
    static final int DROP = 0x20;

    private static final byte[] VERSION = "15\n".getBytes(StandardCharsets.US_ASCII);

    DatabaseRedo() {
        super(RmgrIds.DATABASE, "CREATE_FILE_COPY", "CREATE_WAL_LOG", "DROP");
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {
        DirectBuffer data = record.data();
        switch (record.type()) {
            case CREATE_FILE_COPY -> {
                requireLength(record, 16);
                context.flushTo(record.endLsn());
                createByCopy(
                        data.getInt(0), data.getInt(4), data.getInt(8), data.getInt(12), context);
            }
            case CREATE_WAL_LOG -> {
                requireLength(record, 8);
                createEmpty(data.getInt(0), data.getInt(4), context);
            }
            case DROP -> {
                requireLength(record, 8);
                int count = data.getInt(4);
                if (count < 0 || count > (record.dataLength() - 8) / 4) {
                    throw damaged(record, "its tablespaces run past its end");
                }
                // As for a single file: once gone, there is no way back before this record. (C30)
                context.flushTo(record.endLsn());
                drop(data, count, context);
            }
            default -> throw unknown(record);
        }
    }

    private static void createByCopy(
            int db, int spc, int sourceDb, int sourceSpc, RedoContext context) {
        Disk disk = context.disk();
        String source = path(context, sourceSpc, sourceDb);
        String target = path(context, spc, db);
        if (disk.isDirectory(target)) {
            Directories.removeTree(disk, target);
        }
        createMissing(parent(target), true, context);
        createMissing(source, false, context);
        // What replay changed in the source so far must be in the files that are copied.
        context.pool().flushDatabase(sourceDb);
        context.smgr().closeAll();
        Directories.copy(disk, source, target);
    }

    private static void createEmpty(int db, int spc, RedoContext context) {
        Disk disk = context.disk();
        String path = path(context, spc, db);
        createMissing(parent(path), true, context);
        disk.createDirectory(path);
        Directories.writeFile(disk, path + "/PG_VERSION", VERSION);
        disk.syncDirectory(path);
    }

    private static void drop(DirectBuffer data, int count, RedoContext context) {
        int db = data.getInt(0);
        context.pool().dropDatabase(db);
        context.smgr().syncRequests().forgetDatabase(db);
        context.smgr().closeAll();
        context.forgetMissingPages(db);
        for (int i = 0; i < count; i++) {
            Directories.removeTree(context.disk(), path(context, data.getInt(8 + 4 * i), db));
        }
    }

    /**
     * A directory that a later DROP TABLESPACE or DROP DATABASE has removed already, when this is
     * the second time the record is replayed. Once the data is consistent there is no such excuse.
     * (PostgreSQL: recovery_create_dbdir.)
     */
    private static void createMissing(String path, boolean onlyTablespace, RedoContext context) {
        if (context.disk().exists(path)) {
            return;
        }
        if (onlyTablespace && !path.contains("pg_tblspc/") || context.isConsistent()) {
            throw new DamagedDataException("redo needs a directory that is missing: file=" + path);
        }
        Directories.createAll(context.disk(), path);
    }

    private static String path(RedoContext context, int spc, int db) {
        return context.dataDirectory() + "/" + RelFileLocator.databasePath(spc, db);
    }

    private static String parent(String path) {
        return path.substring(0, path.lastIndexOf('/'));
    }
}
