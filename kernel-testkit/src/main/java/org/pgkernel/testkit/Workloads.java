package org.pgkernel.testkit;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.List;
import java.util.Random;

/**
 * Small deterministic workloads, each a piece of what the published experiment and everyday work
 * ask of redo. Each method runs on one connection of a fresh database and leaves autocommit on;
 * none depends on another.
 */
public final class Workloads {

    /** Work on a running server. */
    @FunctionalInterface
    public interface Workload {
        void run(PostgresServer server) throws SQLException;
    }

    private Workloads() {}

    /**
     * Creates and fills {@code tables} tables of {@code rows} rows, a transaction each; {@code
     * type} is a column type such as {@code varchar(20)}.
     */
    public static void load(Connection connection, String prefix, int tables, int rows, String type)
            throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (int table = 0; table < tables; table++) {
                statement.execute(
                        "begin; create table "
                                + prefix
                                + table
                                + "(id int, v_ch "
                                + type
                                + ", v_ch1 "
                                + type
                                + "); insert into "
                                + prefix
                                + table
                                + " select g, 'abcdefghijklmnopq', 'abcdefghijklmnopq' from generate_series(1, "
                                + rows
                                + ") g; commit");
            }
        }
    }

    /**
     * Runs {@code statement prefixN} for each table, a transaction each: {@code forEach(c,
     * "truncate", "t", 10)}.
     */
    public static void forEach(Connection connection, String command, String prefix, int tables)
            throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (int table = 0; table < tables; table++) {
                statement.execute(command + " " + prefix + table);
            }
        }
    }

    /** TRUNCATE of plain tables (no TOAST table). */
    public static void truncatePlain(PostgresServer server) throws SQLException {
        try (Connection connection = server.connect("postgres")) {
            load(connection, "plain_", 6, 500, "varchar(20)");
            forEach(connection, "truncate", "plain_", 5);
        }
    }

    /** TRUNCATE of tables that have a TOAST table, most of them never written, some really used. */
    public static void truncateWithToast(PostgresServer server) throws SQLException {
        try (Connection connection = server.connect("postgres");
                Statement statement = connection.createStatement()) {
            load(connection, "toast_", 6, 300, "varchar");
            for (int table : List.of(1, 3, 5)) {
                // Random text does not compress below the TOAST threshold; a repeated one is stored
                // compressed, in line.
                statement.execute(
                        "insert into toast_"
                                + table
                                + " select g, (select string_agg(md5(g::text || i::text), '') from generate_series(1, 200) i), repeat('x', 9000)"
                                + " from generate_series(1, 20) g");
            }
            forEach(connection, "truncate", "toast_", 4);
            statement.execute(
                    "insert into toast_0 select g, 'again', (select string_agg(md5(g::text || i::text), '') from generate_series(1, 100) i) from generate_series(1, 20) g");
        }
    }

    /** DELETE of everything, or of the tail, then VACUUM, which truncates. */
    public static void deleteAndVacuum(PostgresServer server) throws SQLException {
        try (Connection connection = server.connect("postgres");
                Statement statement = connection.createStatement()) {
            load(connection, "vac_", 5, 1000, "varchar(20)");
            statement.execute("create index on vac_1 (id)");
            statement.execute("create index on vac_2 (v_ch, id)");
            statement.execute("delete from vac_0");
            statement.execute("delete from vac_1 where id > 300");
            statement.execute("delete from vac_2 where id % 3 = 0");
            statement.execute("delete from vac_3");
            forEach(connection, "vacuum", "vac_", 4);
            statement.execute("vacuum freeze vac_4");
            statement.execute(
                    "insert into vac_0 select g, 'new', 'new' from generate_series(1, 50) g");
            statement.execute("update vac_4 set v_ch = 'changed' where id < 20");
            statement.execute("vacuum vac_4");
        }
    }

    /** The TPC-B mix of pgbench on small tables, from one session, with extra secondary indexes. */
    public static void tpcb(PostgresServer server) throws SQLException {
        tpcb(server, "postgres", 400);
    }

    /** The same in a given database with {@code transactions} transactions. */
    public static void tpcb(PostgresServer server, String database, int transactions)
            throws SQLException {
        Random random = new Random(15_7);
        try (Connection connection = server.connect(database);
                Statement statement = connection.createStatement()) {
            statement.execute(
                    "create table accounts(aid int primary key, bid int, abalance int, filler char(84)) with (fillfactor = 100)");
            statement.execute(
                    "create table tellers(tid int primary key, bid int, tbalance int, filler char(84))");
            statement.execute(
                    "create table branches(bid int primary key, bbalance int, filler char(88))");
            statement.execute("create sequence history_id");
            statement.execute(
                    "create table history(hid bigint default nextval('history_id'), tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))");
            statement.execute("insert into branches select g, 0, '' from generate_series(1, 2) g");
            statement.execute(
                    "insert into tellers select g, 1 + g % 2, 0, '' from generate_series(1, 20) g");
            statement.execute(
                    "insert into accounts select g, 1 + g % 2, 0, '' from generate_series(1, 5000) g");
            statement.execute("create index accounts_balance on accounts (abalance)");
            statement.execute("create index history_teller on history (tid)");
            statement.execute("create unique index history_hid on history (hid)");
            for (int i = 0; i < transactions; i++) {
                int account = 1 + random.nextInt(5000);
                int teller = 1 + random.nextInt(20);
                int branch = 1 + random.nextInt(2);
                int delta = random.nextInt(10001) - 5000;
                connection.setAutoCommit(false);
                statement.execute(
                        "update accounts set abalance = abalance + "
                                + delta
                                + " where aid = "
                                + account);
                statement.execute("select abalance from accounts where aid = " + account);
                statement.execute(
                        "update tellers set tbalance = tbalance + "
                                + delta
                                + " where tid = "
                                + teller);
                statement.execute(
                        "update branches set bbalance = bbalance + "
                                + delta
                                + " where bid = "
                                + branch);
                statement.execute(
                        "insert into history(tid, bid, aid, delta, mtime) values ("
                                + teller
                                + ", "
                                + branch
                                + ", "
                                + account
                                + ", "
                                + delta
                                + ", '2024-05-09')");
                if (i % 17 == 0) {
                    connection.rollback();
                } else {
                    connection.commit();
                }
                connection.setAutoCommit(true);
            }
            statement.execute("select count(*) from accounts where abalance <> 0");
            statement.execute("vacuum accounts, tellers, branches, history");
        }
    }

    /**
     * B-tree: ascending and random splits, duplicates (deduplication), deletes, vacuum with page
     * deletion and reuse, bottom-up deletion.
     */
    public static void btree(PostgresServer server) throws SQLException {
        try (Connection connection = server.connect("postgres");
                Statement statement = connection.createStatement()) {
            statement.execute("create table bt(id int, k text, d int)");
            statement.execute("create index bt_id on bt (id)");
            statement.execute("create index bt_k on bt (k)");
            statement.execute("create index bt_d on bt (d)");
            statement.execute("create index bt_wide on bt (k, id) with (deduplicate_items = off)");
            // In two steps, so that single inserts meet pages that must split, left half and right
            // half.
            statement.execute(
                    "insert into bt select g, md5(g::text), g % 7 from generate_series(1, 6000) g");
            statement.execute(
                    "insert into bt select (g * 7919) % 10000, md5((g * 31)::text), 3 from generate_series(1, 4000) g");
            statement.execute("delete from bt where id between 1000 and 4500");
            statement.execute("vacuum bt");
            statement.execute(
                    "insert into bt select g, md5(g::text), g % 5 from generate_series(20000, 22000) g");
            statement.execute("vacuum bt");
            // Version churn: unchanged keys force bottom-up deletion and deduplication.
            statement.execute("create table churn(id int primary key, v int, pad text)");
            statement.execute("create index churn_v on churn (v)");
            statement.execute("create index churn_pad on churn (pad)");
            statement.execute(
                    "insert into churn select g, g, 'same' from generate_series(1, 300) g");
            for (int i = 0; i < 12; i++) {
                statement.execute("update churn set v = v + 1");
            }
            statement.execute("select count(*) from churn where id > 0");
            statement.execute("set enable_seqscan = off");
            statement.execute("set enable_bitmapscan = off");
            // An index scan marks dead entries; the next insert removes them.
            statement.execute("select sum(v) from churn where v between 1 and 100000");
            statement.execute(
                    "insert into churn select g, g, 'same' from generate_series(301, 900) g");
            statement.execute("delete from churn");
            statement.execute("vacuum churn");
            statement.execute(
                    "insert into churn select g, g, 'after' from generate_series(1, 100) g");
        }
    }

    /** Two databases made by file copy, one dropped again; work in each. */
    public static void databases(PostgresServer server) throws SQLException {
        try (Connection connection = server.connect("postgres");
                Statement statement = connection.createStatement()) {
            statement.execute("create database copied strategy file_copy");
            statement.execute("create database gone strategy file_copy");
        }
        try (Connection connection = server.connect("copied")) {
            load(connection, "c_", 3, 400, "varchar");
            forEach(connection, "truncate", "c_", 2);
        }
        try (Connection connection = server.connect("gone")) {
            load(connection, "g_", 2, 200, "varchar(20)");
        }
        try (Connection connection = server.connect("postgres");
                Statement statement = connection.createStatement()) {
            statement.execute("drop database gone");
        }
    }

    /**
     * Drops, aborted creations, subtransactions, sequences, row locks, updates across pages, index
     * builds.
     */
    public static void transactions(PostgresServer server) throws SQLException {
        try (Connection connection = server.connect("postgres");
                Statement statement = connection.createStatement()) {
            load(connection, "tx_", 4, 200, "varchar");
            statement.execute("drop table tx_0");
            statement.execute("select pg_switch_wal()");
            statement.execute("create sequence seq_a start 10 increment 3");
            statement.execute("select nextval('seq_a') from generate_series(1, 100)");
            connection.setAutoCommit(false);
            statement.execute("create table aborted(id int primary key, v varchar)");
            statement.execute(
                    "insert into aborted select g, repeat('y', 100) from generate_series(1, 300) g");
            statement.execute("drop table tx_1");
            connection.rollback();
            for (int i = 0; i < 3; i++) {
                statement.execute("insert into tx_2 values (" + (1000 + i) + ", 'outer', 'outer')");
                for (int depth = 0; depth < 70; depth++) {
                    Savepoint savepoint = connection.setSavepoint();
                    statement.execute(
                            "insert into tx_2 values (" + (2000 + depth) + ", 'inner', 'inner')");
                    if (depth % 5 == 0) {
                        connection.rollback(savepoint);
                    }
                }
                connection.commit();
            }
            Savepoint dropInside = null;
            statement.execute("create table kept(id int)");
            dropInside = connection.setSavepoint();
            statement.execute("create table lost(id int)");
            statement.execute("insert into lost select generate_series(1, 500)");
            connection.rollback(dropInside);
            statement.execute("insert into kept select generate_series(1, 500)");
            connection.commit();
            statement.execute("select * from kept where id < 50 for update");
            statement.execute("update kept set id = id + 1 where id < 20");
            statement.execute("delete from kept where id > 490");
            connection.commit();
            statement.execute("update tx_3 set v_ch = repeat('wide', 300)");
            statement.execute("select setval('seq_a', 5000)");
            connection.rollback();
            connection.setAutoCommit(true);
            statement.execute("update tx_3 set v_ch1 = repeat('wide', 200) where id % 2 = 0");
            statement.execute("create index tx_3_id on tx_3 (id, v_ch1)");
            statement.execute("create unique index kept_id on kept (id) where id > 100");
            statement.execute("analyze tx_3");
        }
    }

    /** Two sessions share row locks: multixacts with several members. */
    public static void rowLocks(PostgresServer server) throws SQLException {
        try (Connection first = server.connect("postgres");
                Connection second = server.connect("postgres");
                Statement one = first.createStatement();
                Statement two = second.createStatement()) {
            one.execute("create table locked(id int primary key, v int)");
            one.execute("insert into locked select g, g from generate_series(1, 200) g");
            one.execute("create table locking(id int references locked)");
            first.setAutoCommit(false);
            second.setAutoCommit(false);
            one.execute("select * from locked where id < 50 for key share");
            two.execute("select * from locked where id < 80 for share");
            one.execute("insert into locking select generate_series(1, 40)");
            first.commit();
            two.execute("update locked set v = v + 1 where id between 10 and 30");
            second.commit();
            one.execute("select * from locked where id < 20 for no key update");
            first.rollback();
        }
    }

    /** All of the above, in a fixed order. */
    public static void everything(PostgresServer server) throws SQLException {
        // First, because CREATE DATABASE by file copy makes checkpoints of its own.
        databases(server);
        truncatePlain(server);
        truncateWithToast(server);
        deleteAndVacuum(server);
        tpcb(server);
        btree(server);
        transactions(server);
        rowLocks(server);
    }

    /** One number from a query: the first column of its first row. */
    public static long number(Connection connection, String query) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(query)) {
            rows.next();
            return rows.getLong(1);
        }
    }

    /** One text from a query: the first column of its first row. */
    public static String text(Connection connection, String query) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(query)) {
            rows.next();
            return rows.getString(1);
        }
    }
}
