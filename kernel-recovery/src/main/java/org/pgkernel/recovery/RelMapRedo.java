package org.pgkernel.recovery;

import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Crc32c;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.wal.WalRecord;

/**
 * The map of catalogs whose relation file number pg_class cannot hold. A record carries the whole file, which is written over the old one
 * and synced at once. (PostgreSQL: relmap_redo, write_relmap_file, relmapper.c.)
 *
 * <pre>
 *  record   0 dbid | 4 tsid | 8 nbytes | 12 the file, 512 bytes
 * </pre>
 */
final class RelMapRedo implements ResourceManager {
    static final int UPDATE = 0x00;
    static final String FILE_NAME = "pg_filenode.map";

    private static final int DB = 0;
    private static final int SPC = 4;
    private static final int BYTES = 8;
    private static final int MAP = 12;

    private static final int MAP_LENGTH = 512;
    private static final int MAP_MAGIC = 0x592717;
    private static final int MAP_COUNT = 4;
    private static final int MAX_MAPPINGS = 62;
    private static final int MAP_CRC = 504;

    @Override
    public int id() {
        return RmgrIds.RELMAP;
    }

    @Override
    public String name() {
        return "RelMap";
    }

    @Override
    public String identify(int info) {
        return (info & 0xF0) == UPDATE ? "UPDATE" : null;
    }

    @Override
    public boolean covers(int info) {
        return (info & 0xF0) == UPDATE;
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {
        DirectBuffer data = record.data();
        if (record.type() != UPDATE || record.dataLength() < MAP + MAP_LENGTH || data.getInt(BYTES) != MAP_LENGTH) {
            throw new DamagedDataException("RelMap record of " + record.dataLength() + " bytes holds no map: info=" + record.info() + " lsn=" + Lsn.format(record.lsn()));
        }
        int count = data.getInt(MAP + MAP_COUNT);
        if (count < 0 || count > MAX_MAPPINGS) {
            throw new DamagedDataException("RelMap record lists " + Integer.toUnsignedString(count) + " mappings: lsn=" + Lsn.format(record.lsn()));
        }
        byte[] map = new byte[MAP_LENGTH];
        data.getBytes(MAP, map);
        UnsafeBuffer view = new UnsafeBuffer(map);
        view.putInt(0, MAP_MAGIC);
        view.putInt(MAP_CRC, Crc32c.of(view, 0, MAP_CRC));
        String path = context.dataDirectory() + "/" + RelFileLocator.databasePath(data.getInt(SPC), data.getInt(DB)) + "/" + FILE_NAME;
        // Written in place, as 15 does: 512 bytes are one sector.
        Directories.overwriteFile(context.disk(), path, map);
    }
}
