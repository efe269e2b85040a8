package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.Page;
import org.pgkernel.heap.ComboCommandIds;
import org.pgkernel.heap.MultiXacts;
import org.pgkernel.heap.PageFreezer;
import org.pgkernel.heap.PagePruner;
import org.pgkernel.heap.TransactionStatus;
import org.pgkernel.heap.TupleVisibility;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WorkDirectory;

/** Pages that PostgreSQL filled, pruned and frozen by it and by us: the same bytes. */
class HeapPruneIT {
    private static final long SEED = 17;

    /** What became of transactions, asked of the server; none runs any more. */
    private static final class Asked implements TransactionStatus, MultiXacts {
        private final Statement sql;
        private final Map<Integer, Boolean> committed = new HashMap<>();
        private int multixacts;

        Asked(Statement sql) {
            this.sql = sql;
        }

        @Override
        public boolean isCurrent(int xid) {
            return false;
        }

        @Override
        public boolean isInProgress(int xid) {
            return false;
        }

        @Override
        public boolean didCommit(int xid) {
            return committed.computeIfAbsent(
                    xid,
                    id -> {
                        String ask = "select pg_xact_status('" + id + "'::xid8)";
                        try (ResultSet row = sql.executeQuery(ask)) {
                            row.next();
                            return "committed".equals(row.getString(1));
                        } catch (SQLException e) {
                            throw new IllegalStateException(e);
                        }
                    });
        }

        @Override
        public long unflushedCommitLsn(int xid) {
            return 0;
        }

        @Override
        public void members(int multi, Members into) {
            into.clear();
            multixacts++;
            String ask = "select xid, mode from pg_get_multixact_members('" + multi + "')";
            try (ResultSet rows = sql.executeQuery(ask)) {
                while (rows.next()) {
                    into.add(
                            rows.getInt(1),
                            switch (rows.getString(2)) {
                                case "keysh" -> FOR_KEY_SHARE;
                                case "sh" -> FOR_SHARE;
                                case "fornokeyupd" -> FOR_NO_KEY_UPDATE;
                                case "forupd" -> FOR_UPDATE;
                                case "nokeyupd" -> NO_KEY_UPDATE;
                                case "upd" -> UPDATE;
                                default -> throw new IllegalStateException(rows.getString(2));
                            });
                }
            } catch (SQLException e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        public int create(Members members) {
            throw new AssertionError("nobody runs");
        }
    }

    @Test
    void prunedAndFrozenPagesAreTheBytesThatVacuumLeaves() throws Exception {
        try (WorkDirectory work = WorkDirectory.create("pgkernel-prune")) {
            Path data = work.resolve("data");
            ClusterCopy.copy(Templates.of(PostgresBinaries.judge(), false, 16), data);
            Map<String, String> settings = new HashMap<>(PostgresServer.quietSettings());
            settings.put("autovacuum", "off");
            try (PostgresServer server =
                            PostgresServer.builder(PostgresBinaries.judge(), data)
                                    .settings(settings)
                                    .connectable()
                                    .start();
                    Connection connection = server.connect("postgres");
                    Connection other = server.connect("postgres");
                    Connection old = server.connect("postgres");
                    Statement sql = connection.createStatement();
                    Statement second = other.createStatement();
                    Statement reader = old.createStatement()) {
                fill(sql, second, reader);
                byte[] before = file(sql, data);
                Asked asked = new Asked(sql);
                int[] counts = new int[3];
                byte[] ours = before.clone();
                int next;
                try (ResultSet row =
                        sql.executeQuery("select pg_snapshot_xmax(pg_current_snapshot())::text")) {
                    row.next();
                    next = Integer.parseInt(row.getString(1));
                }
                for (int block = 0; block < ours.length / Page.SIZE; block++) {
                    pruneAndFreeze(
                            new UnsafeBuffer(ours, block * Page.SIZE, Page.SIZE),
                            asked,
                            next,
                            counts);
                }
                sql.execute("vacuum (freeze, index_cleanup off, truncate off) rows");
                byte[] theirs = file(sql, data);
                assertEquals(theirs.length, ours.length);
                for (int block = 0; block < ours.length / Page.SIZE; block++) {
                    assertArrayEquals(
                            comparable(theirs, block),
                            comparable(ours, block),
                            "seed " + SEED + " block " + block);
                }
                assertTrue(
                        counts[0] > 5 && counts[1] > 5 && counts[2] > 200 && asked.multixacts > 20,
                        counts[0]
                                + " pruned, "
                                + counts[1]
                                + " frozen, "
                                + counts[2]
                                + " removed, "
                                + asked.multixacts
                                + " multixacts");
            }
        }
    }

    private static void pruneAndFreeze(UnsafeBuffer page, Asked asked, int next, int[] counts) {
        TupleVisibility visibility = new TupleVisibility(asked, asked, new ComboCommandIds());
        PagePruner pruner = new PagePruner(visibility, asked);
        boolean planned = pruner.plan(page, xid -> xid < next, true);
        pruner.applyHints(page);
        if (planned) {
            pruner.apply(page);
            counts[0]++;
            counts[2] += pruner.deleted();
        }
        PageFreezer freezer = new PageFreezer(asked, asked);
        var limits = new PageFreezer.Limits(3, 1, next, 1 << 20);
        if (freezer.plan(page, pruner, limits, next, 1 << 20)) {
            freezer.apply(page);
            counts[1]++;
        }
        assertFalse(freezer.mustPruneAgain());
    }

    /** All of the page but LSN, checksum and the flag that vacuum sets with the visibility map. */
    private static byte[] comparable(byte[] file, int block) {
        UnsafeBuffer page = new UnsafeBuffer(new byte[Page.SIZE]);
        page.putBytes(0, file, block * Page.SIZE, Page.SIZE);
        Page.setLsn(page, 0);
        Page.setChecksum(page, 0);
        Page.clearAllVisible(page);
        return page.byteArray();
    }

    private static byte[] file(Statement sql, Path data) throws SQLException, IOException {
        sql.execute("checkpoint");
        try (ResultSet row = sql.executeQuery("select pg_relation_filepath('rows')")) {
            row.next();
            return Files.readAllBytes(data.resolve(row.getString(1)));
        }
    }

    /** Rows that committed, aborted, changed in place and elsewhere, were deleted and locked. */
    private static void fill(Statement sql, Statement other, Statement reader) throws SQLException {
        Random random = new Random(SEED);
        sql.execute("create table rows (id int primary key, v int, t text) with (fillfactor = 60)");
        sql.execute(
                "insert into rows select i, 0, repeat('x', i % 50) from generate_series(1, 800) i");
        for (int i = 0; i < 1500; i++) {
            if (i == 750) {
                // From here on the server's own pruning has to leave what this reader may see.
                reader.execute("begin isolation level repeatable read");
                reader.execute("select 1");
            }
            int id = 1 + random.nextInt(900);
            String end = random.nextInt(4) == 0 ? "rollback" : "commit";
            sql.execute("begin");
            switch (random.nextInt(8)) {
                case 0 -> sql.execute("delete from rows where id = " + id);
                case 1 ->
                        sql.execute(
                                "insert into rows values ("
                                        + id
                                        + ", 7) on conflict (id) do nothing");
                case 2 -> sql.execute("update rows set t = repeat('y', 90) where id = " + id);
                case 3 -> {
                    sql.execute("savepoint s");
                    sql.execute("update rows set v = -1 where id = " + id);
                    sql.execute("rollback to s");
                    sql.execute("update rows set v = v + 2 where id = " + id);
                }
                case 4 -> {
                    other.execute("begin");
                    other.execute("select 1 from rows where id = " + id + " for key share");
                    sql.execute("update rows set v = v + 3 where id = " + id);
                    other.execute("commit");
                }
                case 5 -> {
                    other.execute("begin");
                    other.execute("select 1 from rows where id = " + id + " for share");
                    sql.execute("select 1 from rows where id = " + id + " for key share");
                    other.execute("rollback");
                }
                default -> sql.execute("update rows set v = v + 1 where id = " + id);
            }
            sql.execute(end);
        }
        reader.execute("commit");
    }
}
