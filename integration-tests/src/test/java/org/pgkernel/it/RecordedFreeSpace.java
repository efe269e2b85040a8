package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.fsm.FreeSpaceMap;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;

/** What the free space map says of each block of a table, bytes; asked of us or of PostgreSQL. */
final class RecordedFreeSpace {
    private RecordedFreeSpace() {}

    /**
     * By our map over the files of a data directory that nobody has open; nothing is written.
     *
     * @param path the main fork's, below the data directory: {@code base/<db>/<number>}
     */
    static List<Integer> asWeTellIt(Path data, String path, boolean checksums) {
        String[] words = path.split("/");
        PosixDisk disk = new PosixDisk();
        try (StorageManager smgr =
                        new StorageManager(
                                disk,
                                data.toString(),
                                StorageManager.SEGMENT_BLOCKS,
                                SizePolicy.SHARED,
                                new SyncRequests(disk, data.toString()));
                BufferPool pool =
                        BufferPool.open(64, smgr, lsn -> {}, checksums, DropStrategy.ADAPTIVE)) {
            SmgrRelation relation =
                    smgr.open(1663, Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            FreeSpaceMap map = new FreeSpaceMap();
            List<Integer> free = new ArrayList<>();
            int blocks = relation.nblocks(ForkNumber.MAIN);
            for (int block = 0; block < blocks; block++) {
                free.add(map.recordedFree(pool, relation, block));
            }
            return free;
        }
    }

    /** By the extension pg_freespacemap, which must be there. */
    static List<Integer> asPostgresTellsIt(Statement statement, String table) throws SQLException {
        List<Integer> free = new ArrayList<>();
        try (ResultSet rows =
                statement.executeQuery(
                        "select avail from pg_freespace('" + table + "') order by blkno")) {
            while (rows.next()) {
                free.add(rows.getInt(1));
            }
        }
        return free;
    }

    /** Equal for every block, and about something: not all blocks are full. */
    static void assertEqual(List<Integer> left, List<Integer> right) {
        org.junit.jupiter.api.Assertions.assertEquals(left, right);
        assertTrue(left.stream().anyMatch(free -> free > 0), "no block has room: " + left);
    }
}
