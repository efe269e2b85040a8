package org.pgkernel.recovery;

import org.agrona.DirectBuffer;
import org.pgkernel.base.FilenodeMap;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.wal.WalRecord;

/**
 * The map of catalogs whose relation file number pg_class cannot hold. A record carries the whole
 * file, which is written over the old one and synced at once. (PostgreSQL: relmap_redo,
 * write_relmap_file, relmapper.c.)
 *
 * <pre>
 *  record   0 dbid | 4 tsid | 8 nbytes | 12 the file, 512 bytes
 * </pre>
 */
final class RelMapRedo extends AbstractResourceManager {
    static final int UPDATE = 0x00;
    private static final int DB = 0;
    private static final int SPC = 4;
    private static final int BYTES = 8;
    private static final int MAP = 12;

    RelMapRedo() {
        super(RmgrIds.RELMAP, "UPDATE");
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {
        DirectBuffer data = record.data();
        if (record.type() != UPDATE
                || record.dataLength() < MAP
                || data.getInt(BYTES) != FilenodeMap.SIZE
                || record.dataLength() < MAP + FilenodeMap.SIZE) {
            throw damaged(record, "it holds no map in " + record.dataLength() + " bytes");
        }
        FilenodeMap map =
                FilenodeMap.decode(data, MAP, FilenodeMap.SIZE, "lsn=" + Lsn.format(record.lsn()));
        String directory =
                context.dataDirectory()
                        + "/"
                        + RelFileLocator.databasePath(data.getInt(SPC), data.getInt(DB));
        map.write(context.disk(), directory, true);
        // A database made block by block has no map before this record.
        context.disk().syncDirectory(directory);
    }
}
