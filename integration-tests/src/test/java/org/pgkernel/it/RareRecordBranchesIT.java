package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.agrona.DirectBuffer;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;

/**
 * Flags and counts inside heap and B-tree records that everyday work seldom sets: each must occur,
 * without a full page image that would hide it, and leave the bytes that PostgreSQL's redo leaves.
 */
class RareRecordBranchesIT {
    private static final Set<String> EXPECTED =
            Set.of(
                    "insert clears all-visible",
                    "delete is super",
                    "delete is partition move",
                    "delete clears all-visible",
                    "update clears all-visible of both pages",
                    "update formats the new page",
                    "HOT update with prefix and suffix",
                    "HOT update with prefix",
                    "HOT update with suffix",
                    "HOT update with neither",
                    "confirm",
                    "inplace",
                    "lock clears all-frozen",
                    "lock beside an update",
                    "lock updated",
                    "prune redirects",
                    "prune leaves dead",
                    "prune leaves unused",
                    "vacuum",
                    "freeze",
                    "freeze keeps a locker",
                    "freeze keeps a multixact",
                    "visible",
                    "visible and frozen",
                    "multi-insert at listed places",
                    "multi-insert on a formatted page",
                    "multi-insert frozen",
                    "split left with posting list",
                    "split right with posting list",
                    "split without right sibling",
                    "split between siblings",
                    "split of an inner page",
                    "insert into posting list",
                    "dedup",
                    "delete with updates",
                    "delete without updates",
                    "vacuum with updates",
                    "vacuum without updates",
                    "half-dead with top parent",
                    "half-dead leaf",
                    "unlink of an inner page",
                    "unlink without left sibling",
                    "new root at level 0",
                    "new root above",
                    "truncate",
                    "generic");

    /**
     * Once from the checkpoint's pages, once with hints logged and from pages as the crash left
     * them.
     */
    @ParameterizedTest(name = "{1} wal_log_hints={0}")
    @CsvSource({"off, AT_CHECKPOINT", "on, AT_CRASH"})
    void equalPagesAfterEveryBranch(String hints, CrashedCluster.Base base) throws Exception {
        var settings =
                new CrashedCluster.Settings(
                        PostgresBinaries.judge(),
                        false,
                        false,
                        "off",
                        "64MB",
                        16,
                        Map.of("wal_log_hints", hints));
        try (CrashedCluster cluster =
                CrashedCluster.make(
                        settings,
                        server -> {},
                        server -> {
                            rows(server);
                            copies(server);
                            pages(server);
                            indexes(server);
                            IndexAndTransactionIT.btree(server);
                        },
                        server -> {})) {
            Path right = cluster.copy("kernel", base);
            TreeMap<String, Integer> branches = branches(right);
            TreeSet<String> missing = new TreeSet<>(EXPECTED);
            missing.removeAll(branches.keySet());
            assertEquals(Set.of(), missing, () -> "logged only " + branches);
            Path left = cluster.copy("postgres", base);
            EqualPages.check(
                    cluster, left, right, KernelRecovery.of(cluster, 16384, DropStrategy.LOOKUP));
            EqualPages.inspect(cluster, right);
        }
    }

    private static void rows(PostgresServer server) throws SQLException {
        try (Connection first = server.connect("postgres");
                Connection second = server.connect("postgres");
                Statement one = first.createStatement();
                Statement two = second.createStatement()) {
            // A speculative insertion that loses: the index function itself inserts the key.
            execute(
                    one,
                    "create table raced(k text, v text)",
                    "alter table raced alter v set storage external",
                    "create sequence calls",
                    "create function racer(key text) returns void language plpgsql as $$ begin if"
                            + " nextval('calls') = 2 then insert into raced values (key, 'racer'); end"
                            + " if; end $$",
                    "create function slow_key(key text) returns text language plpgsql immutable as"
                            + " $$ begin perform racer(key); return key; end $$",
                    "create unique index raced_key on raced (slow_key(k))",
                    "select setval('calls', 1, false)",
                    "insert into raced values ('a', repeat('x', 9000)) on conflict do nothing",
                    "insert into raced values ('b', repeat('x', 9000)) on conflict do nothing");
            // Row locks on a frozen page, then beside an update that is not finished.
            execute(
                    one,
                    "create table lk(id int primary key, v int) with (fillfactor = 50)",
                    "insert into lk select g, 0 from generate_series(1, 300) g",
                    "vacuum (freeze) lk",
                    "select * from lk where id between 50 and 60 for update",
                    "vacuum lk");
            first.setAutoCommit(false);
            second.setAutoCommit(false);
            execute(two, "update lk set v = 1 where id <= 20", "update lk set v = 2 where id <= 9");
            execute(one, "select * from lk where id <= 20 for key share");
            second.commit();
            first.commit();
            execute(two, "update lk set v = 3 where id <= 30");
            second.rollback();
            execute(one, "select * from lk where id <= 30 for no key update");
            first.rollback();
            first.setAutoCommit(true);
            second.setAutoCommit(true);
            execute(
                    one,
                    "vacuum (freeze) lk",
                    "insert into lk select g, 0 from generate_series(400, 500) g");
            // Rows frozen while a transaction, and a multixact with it, still locks them.
            second.setAutoCommit(false);
            first.setAutoCommit(false);
            // The second statement closes the first one's portal, which may still pin a page that
            // VACUUM (FREEZE) wants for itself.
            execute(two, "select * from lk where id between 400 and 410 for share", "select 1");
            execute(one, "select * from lk where id between 405 and 410 for key share");
            first.commit();
            first.setAutoCommit(true);
            execute(one, "vacuum (freeze) lk");
            second.commit();
            second.setAutoCommit(true);
            // Null bitmaps that come and go, what stays in front of and behind the change.
            execute(
                    one,
                    "create table nb(a int, b text, c int, d text, e int, f text, g int, h text, i"
                            + " int) with (fillfactor = 40)",
                    "insert into nb select g, 'b' || g, g, case when g % 2 = 0 then 'd' end, g,"
                            + " 'f', g, 'h', g from generate_series(1, 300) g",
                    "update nb set b = null where a % 3 = 0",
                    "update nb set i = i + 1, d = 'other'",
                    "vacuum nb",
                    "update nb set a = a + 1000",
                    "vacuum nb",
                    "alter table nb add column j text",
                    "update nb set i = i + 1",
                    "update nb set j = 'j' where a % 5 = 0",
                    "update nb set a = -a, h = null, j = repeat('j', 300) where c % 4 = 0");
            // HOT chains: redirected, dead and unused line pointers, the last of them cut off.
            execute(
                    one,
                    "create table hot(id int primary key, v int, pad text) with (fillfactor = 60)",
                    "insert into hot select g, 0, repeat('p', 50) from generate_series(1, 500) g");
            for (int i = 0; i < 6; i++) {
                execute(
                        one,
                        "update hot set v = v + 1 where id % 3 = " + i % 3,
                        "select count(*) from hot");
                first.setAutoCommit(false);
                execute(one, "update hot set v = v + 1 where id % 2 = 0");
                first.rollback();
                first.setAutoCommit(true);
                execute(one, "select count(*) from hot", "delete from hot where id % 17 = " + i);
            }
            execute(
                    one,
                    "vacuum hot",
                    "update hot set v = 7",
                    "delete from hot where id > 200",
                    "vacuum hot");
            // As many line pointers as a page may have.
            execute(
                    one,
                    "create table zero()",
                    "insert into zero select from generate_series(1, 2000)",
                    "delete from zero where (ctid::text::point)[1]::int % 2 = 0",
                    "vacuum zero",
                    "insert into zero select from generate_series(1, 1500)",
                    "delete from zero where (ctid::text::point)[1]::int > 100",
                    "vacuum zero",
                    "insert into zero select from generate_series(1, 700)");
            execute(
                    one,
                    "create table part(id int, v text) partition by list (id)",
                    "create table part_1 partition of part for values in (1)",
                    "create table part_2 partition of part for values in (2)",
                    "insert into part select 1, 'p' || g from generate_series(1, 100) g",
                    "update part set id = 2 where v like '%7'");
        }
    }

    private static void copies(PostgresServer server) throws SQLException {
        try (Connection connection = server.connect("postgres");
                Statement statement = connection.createStatement()) {
            execute(
                    statement,
                    "create table cp(a int, b text default 'default')",
                    "copy cp(a) from program 'seq 1 3000'",
                    "delete from cp where a % 3 = 0",
                    "vacuum cp",
                    "copy cp(a) from program 'seq 1 1500'",
                    "insert into cp select g from generate_series(1, 500) g",
                    "begin; create table frozen(a int); copy frozen from program 'seq 1 4000' with"
                            + " (freeze); commit",
                    "delete from frozen where a % 100 = 1");
        }
    }

    private static void pages(PostgresServer server) throws SQLException {
        try (Connection connection = server.connect("postgres");
                Statement statement = connection.createStatement()) {
            execute(
                    statement,
                    "create table across(id int, v text)",
                    "alter table across alter v set storage plain",
                    "insert into across select g, repeat('a', 1500) from generate_series(1, 200) g",
                    "delete from across where id > 50 and id % 5 <> 0",
                    "vacuum across",
                    "update across set v = repeat('b', 3900) where id < 20",
                    "update across set v = repeat('c', 7000) where id < 60",
                    "vacuum across",
                    "insert into across select g, repeat('d', 2500) from generate_series(300, 330)"
                            + " g");
            // A second leaf page of the free space map, cut inside and then off.
            execute(
                    statement,
                    "create table big(id int, v text)",
                    "alter table big alter v set storage plain",
                    "insert into big select g, repeat('b', 4100) from generate_series(1, 4700) g",
                    "delete from big where id > 4400 or id % 50 = 0",
                    "vacuum big",
                    "delete from big where id > 4069",
                    "vacuum big",
                    "insert into big select g, repeat('b', 4100) from generate_series(1, 150) g");
        }
    }

    private static void indexes(PostgresServer server) throws SQLException {
        try (Connection connection = server.connect("postgres");
                Connection old = server.connect("postgres");
                Statement statement = connection.createStatement();
                Statement snapshot = old.createStatement()) {
            // Versions that nobody may remove fill a unique index.
            execute(
                    statement,
                    "create table uq(id int primary key, v int)",
                    "create index uq_v on uq (v)",
                    "insert into uq select g, 0 from generate_series(1, 400) g");
            old.setAutoCommit(false);
            execute(
                    snapshot,
                    "set transaction isolation level repeatable read",
                    "select count(*) from uq");
            for (int i = 0; i < 12; i++) {
                execute(statement, "update uq set v = v + 1");
            }
            old.commit();
            execute(statement, "update uq set v = v + 1", "vacuum uq");
            // Posting lists on full pages, with heap tids that go between theirs: one key's rows
            // take
            // the places that another's left. Wide keys, few items a page: every place is split at.
            execute(
                    statement,
                    "create table post(k int, n numeric)",
                    "create index post_k on post (k)",
                    "create index post_n on post (n)",
                    "insert into post select g % 4, g % 4 from generate_series(1, 30000) g",
                    "create table wide_post(k int, t text)",
                    "alter table wide_post alter t set storage plain",
                    "create index wide_post_t on wide_post (t)",
                    "insert into wide_post select g % 4, g % 4 || repeat('w', 480) from"
                            + " generate_series(1, 8000) g");
            for (int k = 0; k < 3; k++) {
                execute(
                        statement,
                        "delete from post where k = " + k,
                        "vacuum post",
                        "insert into post select 3, 3 from generate_series(1, 7500) g",
                        "delete from wide_post where k = " + k,
                        "vacuum wide_post",
                        "insert into wide_post select 3, 3 || repeat('w', 480) from"
                                + " generate_series(1, 2000) g");
            }
            execute(
                    statement,
                    "create index concurrently post_kn on post (k, n)",
                    "reindex index concurrently post_k",
                    "drop index concurrently post_n");
            execute(
                    statement,
                    "create extension bloom",
                    "create table bl(a int, b int)",
                    "create index bl_ab on bl using bloom (a, b)",
                    "insert into bl select g, g % 7 from generate_series(1, 3000) g",
                    "delete from bl where a % 2 = 0",
                    "vacuum bl",
                    "insert into bl select g, g % 7 from generate_series(1, 500) g");
        }
    }

    private static void execute(Statement statement, String... all) throws SQLException {
        for (String sql : all) {
            statement.execute(sql);
        }
    }

    /** How often each branch occurs in records whose block 0 is not restored from an image. */
    private static TreeMap<String, Integer> branches(Path directory) {
        PosixDisk disk = new PosixDisk();
        ControlFile control = ControlFile.read(disk, directory.toString());
        TreeMap<String, Integer> branches = new TreeMap<>();
        String wal = directory + "/pg_wal";
        try (WalReader reader = new WalReader(disk, wal, TimelineHistory.of(1), 16 << 20, 0)) {
            reader.begin(control.checkPointRedo());
            for (WalRecord record = reader.next(); record != null; record = reader.next()) {
                if (!record.hasBlock(0) || !record.applyImage(0)) {
                    for (String branch : branchesOf(record)) {
                        branches.merge(branch, 1, Integer::sum);
                    }
                }
            }
        }
        return branches;
    }

    private static List<String> branchesOf(WalRecord record) {
        return switch (record.rmid()) {
            case 2 -> (record.info() & 0xF0) == 0x20 ? List.of("truncate") : List.of();
            case 9 -> heap2(record);
            case 10 -> heap(record);
            case 11 -> btree(record);
            case 20 -> List.of("generic");
            default -> List.of();
        };
    }

    private static List<String> heap(WalRecord record) {
        DirectBuffer main = record.data();
        return switch (record.info() & 0x70) {
            case 0x00 -> when((main.getByte(2) & 1) != 0, "insert clears all-visible");
            case 0x10 -> {
                int flags = main.getByte(7);
                yield (flags & 8) != 0
                        ? List.of("delete is super")
                        : (flags & 16) != 0
                                ? List.of("delete is partition move")
                                : when((flags & 1) != 0, "delete clears all-visible");
            }
            case 0x20 ->
                    (record.info() & 0x80) != 0
                            ? List.of("update formats the new page")
                            : when(
                                    (main.getByte(7) & 3) == 3,
                                    "update clears all-visible of both pages");
            case 0x40 ->
                    switch (main.getByte(7) & 0x60) {
                        case 0x60 -> List.of("HOT update with prefix and suffix");
                        case 0x40 -> List.of("HOT update with suffix");
                        case 0x20 -> List.of("HOT update with prefix");
                        default -> List.of("HOT update with neither");
                    };
            case 0x50 -> List.of("confirm");
            case 0x60 ->
                    (main.getByte(7) & 1) != 0
                            ? List.of("lock clears all-frozen")
                            : when((main.getByte(6) & 3) == 1, "lock beside an update");
            case 0x70 -> List.of("inplace");
            default -> List.of();
        };
    }

    private static List<String> heap2(WalRecord record) {
        DirectBuffer main = record.data();
        return switch (record.info() & 0x70) {
            case 0x10 -> {
                int redirected = main.getShort(4);
                int dead = main.getShort(6);
                int unused = record.blockDataLength(0) / 2 - 2 * redirected - dead;
                TreeSet<String> found = new TreeSet<>();
                found.addAll(when(redirected > 0, "prune redirects"));
                found.addAll(when(dead > 0, "prune leaves dead"));
                found.addAll(when(unused > 0, "prune leaves unused"));
                yield List.copyOf(found);
            }
            case 0x20 -> List.of("vacuum");
            case 0x30 -> freeze(record.blockData(0), main.getShort(4) & 0xFFFF);
            case 0x40 -> List.of(main.getByte(4) == 3 ? "visible and frozen" : "visible");
            case 0x50 ->
                    (main.getByte(0) & 0x20) != 0
                            ? List.of("multi-insert frozen")
                            : (record.info() & 0x80) != 0
                                    ? List.of("multi-insert on a formatted page")
                                    : List.of("multi-insert at listed places");
            case 0x60 -> List.of("lock updated");
            default -> List.of();
        };
    }

    private static List<String> freeze(DirectBuffer plans, int count) {
        TreeSet<String> found = new TreeSet<>(Set.of("freeze"));
        for (int i = 0; i < count; i++) {
            boolean multi = (plans.getShort(12 * i + 8) & 0x1000) != 0;
            found.addAll(
                    when(
                            plans.getInt(12 * i) != 0,
                            multi ? "freeze keeps a multixact" : "freeze keeps a locker"));
        }
        return List.copyOf(found);
    }

    private static List<String> btree(WalRecord record) {
        DirectBuffer main = record.data();
        int type = record.info() & 0xF0;
        return switch (type) {
            case 0x30, 0x40 -> {
                String side = type == 0x30 ? "left" : "right";
                boolean right = record.maxBlockId() >= 2 && record.hasBlock(2);
                TreeSet<String> found = new TreeSet<>();
                found.addAll(when(main.getShort(8) != 0, "split " + side + " with posting list"));
                found.addAll(when(main.getInt(0) > 0, "split of an inner page"));
                found.add(right ? "split between siblings" : "split without right sibling");
                yield List.copyOf(found);
            }
            case 0x50 -> List.of("insert into posting list");
            case 0x60 -> List.of("dedup");
            case 0x70 ->
                    List.of("delete " + (main.getShort(6) != 0 ? "with" : "without") + " updates");
            case 0xC0 ->
                    List.of("vacuum " + (main.getShort(2) != 0 ? "with" : "without") + " updates");
            case 0xB0 ->
                    List.of(main.getInt(16) == -1 ? "half-dead leaf" : "half-dead with top parent");
            case 0x80, 0x90 -> {
                TreeSet<String> found = new TreeSet<>();
                found.addAll(
                        when(
                                record.maxBlockId() >= 3 && record.hasBlock(3),
                                "unlink of an inner page"));
                found.addAll(when(main.getInt(0) == 0, "unlink without left sibling"));
                yield List.copyOf(found);
            }
            case 0xA0 -> List.of(main.getInt(4) == 0 ? "new root at level 0" : "new root above");
            default -> List.of();
        };
    }

    private static List<String> when(boolean condition, String branch) {
        return condition ? List.of(branch) : List.of();
    }
}
