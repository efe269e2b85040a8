package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.ServiceLoader;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.recovery.RecoveryEnvironment;
import org.pgkernel.recovery.RecoveryModuleProvider;
import org.pgkernel.recovery.ResourceManager;
import org.pgkernel.testkit.ClusterComparison;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;

/**
 * Every B-tree, sequence, subtransaction and multixact record type, replayed by us and by
 * PostgreSQL to equal bytes.
 */
class IndexAndTransactionIT {
    /** What the workload must have logged, or the comparison proves nothing. */
    private static final List<String> EXPECTED =
            List.of(
                    "Btree/INSERT_LEAF",
                    "Btree/INSERT_UPPER",
                    "Btree/INSERT_POST",
                    "Btree/SPLIT_L",
                    "Btree/SPLIT_R",
                    "Btree/DEDUP",
                    "Btree/VACUUM",
                    "Btree/DELETE",
                    "Btree/NEWROOT",
                    "Btree/MARK_PAGE_HALFDEAD",
                    "Btree/UNLINK_PAGE",
                    "Btree/UNLINK_PAGE_META",
                    "Btree/INSERT_META",
                    "Btree/META_CLEANUP",
                    "Btree/REUSE_PAGE",
                    "Sequence/LOG",
                    "Transaction/COMMIT",
                    "Transaction/ABORT",
                    "Transaction/ASSIGNMENT",
                    "CLOG/ZEROPAGE",
                    "MultiXact/ZERO_OFF_PAGE",
                    "MultiXact/ZERO_MEM_PAGE",
                    "MultiXact/CREATE_ID",
                    "Standby/LOCK",
                    "Standby/RUNNING_XACTS");

    /** Locks each row of a table by a subtransaction of its own. */
    static final String LOCK_EACH_ROW =
            "do $$ declare n int; begin for i in 1..%d loop begin"
                    + " select id into n from locked where id = i for key share;"
                    + " exception when raise_exception then null; end; end loop; end $$";

    @ParameterizedTest(name = "full_page_writes={0}")
    @ValueSource(booleans = {true, false})
    void everyRecordTypeLeavesTheBytesThatPostgresLeaves(boolean fullPageWrites) throws Exception {
        var settings =
                new CrashedCluster.Settings(
                        PostgresBinaries.judge(), !fullPageWrites, fullPageWrites, "off", "64MB");
        try (CrashedCluster cluster =
                CrashedCluster.make(
                        settings,
                        server -> {},
                        server -> {
                            btree(server);
                            transactions(server);
                        },
                        server -> {})) {
            for (CrashedCluster.Base base : CrashedCluster.Base.values()) {
                Path ours = cluster.copy("ours-" + base, base);
                Path theirs = cluster.copy("theirs-" + base, base);
                TreeMap<String, Integer> types = types(ours);
                TreeSet<String> missing = new TreeSet<>(EXPECTED);
                missing.removeAll(types.keySet());
                assertEquals(new TreeSet<>(), missing, () -> "logged only " + types);
                assertTrue(types.get("MultiXact/ZERO_OFF_PAGE") > 1, types::toString);
                assertTrue(types.get("MultiXact/ZERO_MEM_PAGE") > 3, types::toString);
                Cluster.openForCrashRecovery(ours, ClusterOptions.defaults()).close();
                PostgresServer.recover(settings.binaries(), theirs, settings.asMap());
                ClusterComparison.Result result = ClusterComparison.compare(ours, theirs);
                assertTrue(result.equal(), result::describe);
            }
        }
    }

    /** Record types in the WAL from the redo point on, and how often. */
    static TreeMap<String, Integer> types(Path directory) {
        PosixDisk disk = new PosixDisk();
        ControlFile control = ControlFile.read(disk, directory.toString());
        ResourceManager[] managers = new ResourceManager[256];
        for (RecoveryModuleProvider provider : ServiceLoader.load(RecoveryModuleProvider.class)) {
            var environment = new RecoveryEnvironment(disk, directory.toString(), null, null);
            for (ResourceManager manager : provider.create(environment).resourceManagers()) {
                managers[manager.id()] = manager;
            }
        }
        TreeMap<String, Integer> types = new TreeMap<>();
        try (WalReader reader =
                new WalReader(disk, directory + "/pg_wal", TimelineHistory.of(1), 16 << 20, 0)) {
            reader.begin(control.checkPointRedo());
            for (WalRecord record = reader.next(); record != null; record = reader.next()) {
                ResourceManager manager = managers[record.rmid()];
                types.merge(
                        manager.name() + "/" + manager.identify(record.info()), 1, Integer::sum);
            }
        }
        return types;
    }

    static void btree(PostgresServer server) throws SQLException {
        try (Connection connection = server.connect("postgres");
                Statement statement = connection.createStatement()) {
            // Posting lists: few keys, built by single inserts, thinned out, and filled again in
            // between.
            statement.execute("create table dup(k int, v text, w int)");
            statement.execute("create index dup_k on dup(k)");
            statement.execute("create index dup_v on dup(v)");
            statement.execute(
                    "insert into dup select g % 10, 'key ' || g % 7, g from generate_series(1, 20000) g");
            statement.execute("delete from dup where w % 3 = 0");
            statement.execute("vacuum dup");
            statement.execute(
                    "insert into dup select g % 10, 'key ' || g % 7, g from generate_series(1, 6000) g");
            // Version churn: bottom-up deletion and killed items.
            statement.execute("create table churn(id int primary key, k int, n int)");
            statement.execute("create index churn_n on churn(n)");
            statement.execute("create index churn_k on churn(k)");
            statement.execute(
                    "insert into churn select g, g % 5, 0 from generate_series(1, 300) g");
            for (int i = 0; i < 60; i++) {
                statement.execute("update churn set n = n + 1");
            }
            // Killed items in posting lists.
            statement.execute("create table killed(k int, w int)");
            statement.execute("create index killed_k on killed(k)");
            statement.execute(
                    "insert into killed select g % 50, g from generate_series(1, 8000) g");
            statement.execute("delete from killed where w % 2 = 0");
            statement.execute("set enable_seqscan = off; set enable_bitmapscan = off");
            statement.execute("select count(w) from killed where k between 0 and 49");
            statement.execute(
                    "insert into killed select g % 50, g from generate_series(1, 8000) g");
            // Deep trees of wide keys, emptied from the left, the right and the middle; then used
            // again.
            statement.execute("create table wide(id int, k text)");
            statement.execute("alter table wide alter k set storage plain");
            statement.execute("create index wide_k on wide(k) with (deduplicate_items = off)");
            statement.execute(
                    "insert into wide select g, lpad(g::text, 8, '0') || repeat(md5(g::text), 30) from generate_series(1, 3000) g");
            statement.execute("delete from wide where id between 300 and 1200 or id > 2000");
            statement.execute("vacuum wide");
            statement.execute("delete from wide where id > 40");
            statement.execute("vacuum wide");
            statement.execute("select txid_current()");
            statement.execute("select txid_current()");
            statement.execute("vacuum wide");
            statement.execute(
                    "insert into wide select g, lpad(g::text, 8, '0') || repeat(md5(g::text), 30) from generate_series(3000, 4500) g");
            // A root whose only child left becomes the fast root, and is split later.
            statement.execute("create table fast(id int)");
            statement.execute("create index fast_id on fast(id)");
            statement.execute("insert into fast select generate_series(1, 500)");
            statement.execute("delete from fast where id <= 420");
            statement.execute("vacuum fast");
            statement.execute("insert into fast select generate_series(600, 1500)");
            statement.execute("create sequence numbers");
            statement.execute("select nextval('numbers') from generate_series(1, 100)");
            statement.execute("alter sequence numbers restart with 1000");
            statement.execute("select nextval('numbers')");
        }
    }

    static void transactions(PostgresServer server) throws SQLException {
        try (Connection connection = server.connect("postgres");
                Connection other = server.connect("postgres");
                Statement statement = connection.createStatement();
                Statement second = other.createStatement()) {
            statement.execute("create table sub(id int)");
            // More subtransactions than a page of pg_xact or pg_subtrans holds, a third of them
            // rolled back.
            statement.execute(
                    "do $$ begin for i in 1..40000 loop begin insert into sub values (i);"
                            + " if i % 3 = 0 then raise exception 'x'; end if;"
                            + " exception when raise_exception then null; end; end loop; end $$");
            connection.setAutoCommit(false);
            for (int i = 0; i < 100; i++) {
                connection.setSavepoint();
                statement.execute("insert into sub values (" + i + ")");
            }
            connection.rollback();
            statement.execute("create table dropped as select * from sub limit 1000");
            connection.rollback();
            connection.setAutoCommit(true);
            // Multixacts on more than one page of offsets and members.
            statement.execute("create table locked(id int primary key, n int)");
            statement.execute("insert into locked select g, 0 from generate_series(1, 2500) g");
            connection.setAutoCommit(false);
            other.setAutoCommit(false);
            statement.execute("select id from locked order by id for key share");
            second.execute(LOCK_EACH_ROW.formatted(2500));
            connection.commit();
            statement.execute("select id from locked where id < 900 order by id for key share");
            second.execute("savepoint a");
            second.execute("update locked set n = 1 where id between 100 and 300");
            other.commit();
            connection.commit();
            connection.setAutoCommit(true);
            statement.execute("vacuum locked");
            statement.execute("vacuum freeze locked");
        }
    }
}
