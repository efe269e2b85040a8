package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.fsm.FreeSpaceMap;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleId;
import org.pgkernel.heap.VacuumOptions;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.testkit.ClusterCopy;

/**
 * A small table has grown, was emptied and cut: its free space map is still asked, and is right.
 */
class ShrunkTableTest {
    private static final String WORD = "w".repeat(700);
    private static final int ROWS_A_PAGE = 11;
    private static final int PAGES = 5;
    private static final int KEPT = 2;

    /** Who has the table when it is looked at. */
    private enum Mode {
        PRIMARY,
        CRASH_REDO,
        PROMOTED_STANDBY
    }

    @TempDir Path directory;

    private final Disk disk = new PosixDisk();
    private final FreeSpaceMap map = new FreeSpaceMap();

    private ClusterOptions options() {
        return TestRun.options(disk, new TestRun.HandClock());
    }

    /** With checksums the map's page is logged as an image, without them redo has to clear it. */
    @ParameterizedTest
    @CsvSource({
        "PRIMARY, true",
        "CRASH_REDO, true",
        "PROMOTED_STANDBY, true",
        "CRASH_REDO, false",
        "PROMOTED_STANDBY, false"
    })
    @DisplayName(
            "C16 (3): after a cut to two pages the map's fork stays, says nothing of what is gone, and is asked first")
    void theMapOfAShrunkTable(Mode mode, boolean checksums) {
        Path data = directory.resolve("primary");
        Cluster.create(data, TestRun.create(disk).withChecksums(checksums));
        // The table, its TOAST table and the catalogue before it: what a standby begins with.
        try (Cluster cluster = Cluster.open(data, options());
                Backend backend = cluster.newBackend()) {
            backend.begin();
            backend.createTable("t", BackendTest.COLUMNS, TableOptions.DEFAULT);
            backend.commit();
        }
        Path standby = directory.resolve("standby");
        ClusterCopy.copy(data, standby);
        Cluster cluster = Cluster.open(data, options());
        growAndShrink(cluster);
        cluster =
                switch (mode) {
                    case PRIMARY -> cluster;
                    case CRASH_REDO -> {
                        cluster.abandon();
                        yield Cluster.open(data, options());
                    }
                    case PROMOTED_STANDBY -> {
                        cluster.abandon();
                        ClusterCopy.replaceWal(data, standby);
                        Standby following = Cluster.openStandby(standby, options());
                        following.resume();
                        Cluster promoted = following.promote();
                        promoted.checkpoint();
                        promoted.close();
                        yield Cluster.open(standby, options());
                    }
                };
        try {
            check(cluster);
        } finally {
            cluster.abandon();
        }
    }

    /** To five pages, vacuumed, emptied but for one row of the second page, cut. */
    private void growAndShrink(Cluster cluster) {
        try (Backend backend = cluster.newBackend()) {
            Table table = backend.table("t");
            List<Long> tids = insert(backend, table, 0, PAGES * ROWS_A_PAGE);
            assertEquals(PAGES, blocks(backend, table));
            backend.begin();
            for (long tid : tids.subList(2 * ROWS_A_PAGE, 3 * ROWS_A_PAGE)) {
                table.delete(tid);
            }
            backend.commit();
            backend.vacuum("t", VacuumOptions.DEFAULT);
            assertTrue(recorded(backend, table, 2) > 100, "page 2 has room for all");
            assertEquals(PAGES, blocks(backend, table));
            backend.begin();
            tids.subList(2 * ROWS_A_PAGE, 3 * ROWS_A_PAGE).clear();
            tids.remove(KEPT * ROWS_A_PAGE - 1);
            tids.forEach(table::delete);
            backend.commit();
            assertEquals(PAGES - KEPT, backend.vacuum("t", VacuumOptions.DEFAULT).removedPages());
        }
    }

    private void check(Cluster cluster) {
        try (Backend backend = cluster.newBackend()) {
            Table table = backend.table("t");
            backend.begin();
            SmgrRelation storage = table.forReading().storage();
            backend.commit();
            assertEquals(KEPT, blocks(backend, table));
            assertTrue(storage.exists(ForkNumber.FSM), "the fork stays");
            for (int block = KEPT; block < 2 * PAGES; block++) {
                assertEquals(0, recorded(backend, table, block), "block " + block + " is gone");
            }
            // Filled up by what the map says of the two pages, then at the end, one by one.
            List<Long> tids = insert(backend, table, 100, KEPT * ROWS_A_PAGE - 1);
            assertEquals(KEPT, blocks(backend, table), "what is free is used first");
            assertTrue(tids.stream().anyMatch(tid -> TupleId.block(tid) == 0));
            tids = insert(backend, table, 200, 2 * ROWS_A_PAGE);
            assertEquals(KEPT + 2, blocks(backend, table));
            assertTrue(tids.stream().allMatch(tid -> TupleId.block(tid) >= KEPT));
            assertEquals(KEPT * ROWS_A_PAGE + 2 * ROWS_A_PAGE, count(backend, table));
        }
    }

    private int recorded(Backend backend, Table table, int block) {
        backend.begin();
        SmgrRelation storage = table.forReading().storage();
        int category = map.recordedCategory(backend.kernel().pool, storage, block);
        backend.commit();
        return category;
    }

    private static int blocks(Backend backend, Table table) {
        backend.begin();
        int blocks = table.forReading().storage().nblocks(ForkNumber.MAIN);
        backend.commit();
        return blocks;
    }

    private static List<Long> insert(Backend backend, Table table, int from, int count) {
        List<Long> tids = new ArrayList<>();
        RowValues row = table.newRow();
        backend.begin();
        for (int id = from; id < from + count; id++) {
            row.setNumber(0, id);
            row.setText(1, WORD);
            tids.add(table.insert(row));
        }
        backend.commit();
        return tids;
    }

    private static int count(Backend backend, Table table) {
        int rows = 0;
        backend.begin();
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                rows++;
            }
        }
        backend.commit();
        return rows;
    }
}
