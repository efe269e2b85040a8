package org.pgkernel.testkit.verify;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageChecksum;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.disk.NativeMemory;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.testkit.DiskTransfer;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.testkit.WorkDirectory;
import org.pgkernel.testkit.Workloads;

/** The verifier finds nothing in what PostgreSQL wrote, and what was spoilt on purpose. */
class HeapVerifierTest {
    private static final String DATA = "/data";

    /** Tables' files and how many rows they show. */
    private static final Map<String, Integer> ROWS = new LinkedHashMap<>();

    private static SimulatedDisk disk;
    private static String spoilt;

    @BeforeAll
    static void workAndShutDown() throws Exception {
        try (WorkDirectory work = WorkDirectory.create("pgkernel-verify")) {
            PostgresServer.initdb(PostgresBinaries.judge(), work.resolve("data"), true, 1);
            try (PostgresServer server =
                    PostgresServer.builder(PostgresBinaries.judge(), work.resolve("data"))
                            .settings(PostgresServer.quietSettings())
                            .connectable()
                            .start()) {
                Workloads.everything(server);
                try (Connection connection = server.connect("postgres");
                        Statement sql = connection.createStatement()) {
                    sql.execute("create table spoilt (k int, v int)");
                    sql.execute("insert into spoilt select i, i from generate_series(1, 300) i");
                    sql.execute("vacuum (freeze) spoilt");
                    sql.execute("insert into spoilt values (0, 0)");
                    sql.execute("update spoilt set v = -1 where k = 0");
                    sql.execute("checkpoint");
                    countRows(sql);
                    spoilt = Workloads.text(connection, "select pg_relation_filepath('spoilt')");
                }
                server.stop(PostgresServer.StopMode.FAST);
            }
            disk = new SimulatedDisk(1);
            DiskTransfer.copy(new PosixDisk(), work.resolve("data").toString(), disk, DATA);
            disk.syncAll();
        }
    }

    private static void countRows(Statement sql) throws Exception {
        Map<String, String> files = new LinkedHashMap<>();
        try (ResultSet rows =
                sql.executeQuery(
                        "select oid::regclass::text, pg_relation_filepath(oid) from pg_class where"
                                + " relkind in ('r', 't', 'm') and relpersistence = 'p'")) {
            while (rows.next()) {
                files.put(rows.getString(1), rows.getString(2));
            }
        }
        for (Map.Entry<String, String> each : files.entrySet()) {
            try (ResultSet row = sql.executeQuery("select count(*) from " + each.getKey())) {
                row.next();
                ROWS.put(each.getValue(), row.getInt(1));
            }
        }
    }

    @AfterAll
    static void forget() {
        disk = null;
    }

    @Test
    void whatPostgresWroteIsCleanAndHasItsRows() {
        HeapVerifier verifier = new HeapVerifier(disk, DATA);
        Map<String, Integer> live = new LinkedHashMap<>();
        ROWS.keySet().forEach(path -> live.put(path, verifier.verify(path)));
        verifier.requireClean();
        assertEquals(ROWS, live);
        assertTrue(live.values().stream().mapToInt(n -> n).sum() > 10_000, live.toString());
    }

    @Test
    void whatWasSpoiltIsFound() {
        finds("wrong checksum", page -> Page.setLsn(page, Page.lsn(page) + 8), false);
        finds("page header", page -> Page.setUpper(page, Page.lower(page) - 4));
        finds("tuples overlap", page -> Page.setItemId(page, 2, Page.itemId(page, 1)));
        finds(
                "redirect to 3",
                page -> {
                    Page.setItemId(page, 3, 0);
                    Page.setItemId(page, 1, Page.packItemId(3, Page.LP_REDIRECT, 0));
                });
        finds("offset 5 is dead", page -> Page.setItemId(page, 5, Page.LP_DEAD << 15));
        finds("xmin 4000000 was not assigned yet", page -> page.putInt(tuple(page, 4), 4_000_000));
        finds(
                "xmax 4000000 was not assigned yet",
                page -> page.putInt(tuple(page, 4) + 4, 4_000_000));
        finds("map bit without the page's flag", Page::clearAllVisible);
        finds("not frozen", page -> page.putShort(tuple(page, 4) + 20, (short) 0x900));
        finds(
                "is not visible",
                page -> {
                    page.putInt(tuple(page, 4) + 4, page.getInt(tuple(page, 4)));
                    page.putShort(tuple(page, 4) + 20, (short) 0x100);
                });
        finds("hint says aborted", page -> page.putShort(tuple(page, 4) + 20, (short) 0xA00));
    }

    @Test
    void aBrokenHotChainIsFound() {
        HeapVerifier verifier = spoil(1, page -> setInfomask2(page, 2, 0x4000, 0), true);
        assertTrue(
                verifier.findings().toString().contains("HOT tuple"),
                verifier.findings().toString());
        assertFalse(verifier.findings().toString().contains("block 0"));
    }

    private static void setInfomask2(UnsafeBuffer page, int fromEnd, int clear, int set) {
        int at = tuple(page, Page.maxOffsetNumber(page) + 1 - fromEnd) + 18;
        page.putShort(at, (short) (page.getShort(at) & ~clear | set));
    }

    private static int tuple(UnsafeBuffer page, int offset) {
        return Page.lpOffset(Page.itemId(page, offset));
    }

    private static void finds(String what, Consumer<UnsafeBuffer> spoiling) {
        finds(what, spoiling, true);
    }

    private static void finds(String what, Consumer<UnsafeBuffer> spoiling, boolean rightChecksum) {
        List<String> findings = spoil(0, spoiling, rightChecksum).findings();
        assertTrue(findings.toString().contains(what), what + " in " + findings);
    }

    private static HeapVerifier spoil(
            int block, Consumer<UnsafeBuffer> spoiling, boolean rightChecksum) {
        SimulatedDisk copy = disk.copy(2);
        long memory = NativeMemory.reserve(Page.SIZE);
        try (DiskFile file = copy.open(DATA + "/" + spoilt)) {
            file.read(memory, Page.SIZE, (long) block * Page.SIZE);
            UnsafeBuffer page = new UnsafeBuffer(memory, Page.SIZE);
            spoiling.accept(page);
            if (rightChecksum) {
                Page.setChecksum(page, PageChecksum.compute(page, block));
            }
            file.write(memory, Page.SIZE, (long) block * Page.SIZE);
        } finally {
            NativeMemory.release(memory, Page.SIZE);
        }
        HeapVerifier verifier = new HeapVerifier(copy, DATA);
        verifier.verify(spoilt);
        return verifier;
    }
}
