package org.pgkernel.it;

import java.nio.file.Path;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;

/**
 * What people do to a cluster besides the published experiment, one short script each: equal pages
 * after each.
 */
class EverydayWorkIT {
    private static final boolean FULL = "full".equals(System.getProperty("pgkernel.matrix"));

    /**
     * Statements on the database postgres; a line that begins with a backslash and a name goes to
     * that database from there on.
     */
    record Script(
            String name, List<String> before, List<String> after, Map<String, String> settings) {
        @Override
        public String toString() {
            return name;
        }
    }

    private static Script script(String name, String... after) {
        return new Script(name, List.of(), List.of(after), Map.of());
    }

    static Stream<Script> scripts() {
        return Stream.of(
                new Script(
                        "unlogged tables are reset",
                        List.of(
                                "create unlogged table u(id int primary key, v text)",
                                "insert into u select g, repeat('u', 100) from generate_series(1, 500) g"),
                        List.of(
                                "insert into u select g, 'more' from generate_series(501, 900) g",
                                "create unlogged table u2(id serial, v text)",
                                "insert into u2(v) select 'x' from generate_series(1, 300)",
                                "create table dropped_unlogged(id int)",
                                "alter table u set logged",
                                "create unlogged table u3(id int)",
                                "insert into u3 select generate_series(1, 10)",
                                "drop table u3"),
                        Map.of()),
                script(
                        "catalog rewritten, relation map updated",
                        "create table r(id int primary key, v text)",
                        "insert into r select g, md5(g::text) from generate_series(1, 2000) g",
                        "vacuum full pg_class",
                        "vacuum full r",
                        "cluster r using r_pkey",
                        "reindex table pg_attribute",
                        "reindex index r_pkey",
                        "vacuum full pg_database",
                        "insert into r select g, 'after' from generate_series(3000, 3100) g"),
                script(
                        "database copied through WAL",
                        "create table in_template(id int)",
                        "create database w strategy wal_log",
                        "\\w",
                        "create table t as select g, repeat('w', 50) v from generate_series(1, 500) g",
                        "create index on t (v)",
                        "\\postgres",
                        "create database w2 template w strategy wal_log",
                        "drop database w"),
                script(
                        "upserts, row locks and updates of locked rows",
                        "create table k(id int primary key, v int)",
                        "insert into k select g, 0 from generate_series(1, 300) g",
                        "insert into k select g, 1 from generate_series(200, 400) g on conflict (id) do update set v = k.v + 1",
                        "insert into k select g, 1 from generate_series(200, 400) g on conflict do nothing",
                        "begin; select * from k where id < 50 for no key update; update k set v = 7 where id < 20; select * from k where id < 30 for update; savepoint s;"
                                + " update k set v = v + 1 where id < 60; select * from k where id < 90 for share; rollback to s; delete from k where id < 5; commit",
                        "begin; select * from k for key share; savepoint a; select * from k where id < 100 for update; savepoint b; update k set v = v - 1 where id < 70; commit",
                        "vacuum (freeze) k"),
                script(
                        "many transaction ids: CLOG and SUBTRANS pages",
                        "create table x(id int)",
                        "do $$ begin for i in 1..36000 loop begin insert into x values (i); if i % 3 = 0 then raise exception 'no'; end if; exception when others then null; end; end loop; end $$",
                        "select txid_current()",
                        "do $$ begin for i in 1..100 loop begin insert into x values (i); exception when others then null; end; end loop; end $$"),
                script(
                        "large values",
                        "create table l(id int, v text)",
                        "alter table l alter v set storage external",
                        "insert into l select g, repeat(md5(g::text), 3000) from generate_series(1, 60) g",
                        "update l set v = v || 'x' where id % 3 = 0",
                        "delete from l where id % 4 = 0",
                        "vacuum l",
                        "insert into l select g, repeat(md5(g::text), 1000) from generate_series(1, 60) g",
                        "alter table l add column w int default 7",
                        "alter table l alter v type varchar",
                        "truncate l",
                        "insert into l values (1, 'x')"),
                script(
                        "wide and duplicate B-tree keys, included columns, page reuse",
                        "create table b(a text, b int, c int)",
                        "create index b1 on b (a) include (c)",
                        "create unique index b2 on b (b, a)",
                        "create index b3 on b (c)",
                        "create index b4 on b (a desc nulls first, c)",
                        "insert into b select repeat(chr(65 + g % 26), 200 + g % 1500) || g, g, g % 3 from generate_series(1, 1500) g",
                        "insert into b select 'same', g, 1 from generate_series(2000, 5000) g",
                        "delete from b where b < 1400",
                        "vacuum b",
                        "vacuum b",
                        "insert into b select repeat('z', 900) || g, g, g from generate_series(10000, 10900) g",
                        "delete from b where c = 1 and b % 2 = 0",
                        "vacuum b",
                        "insert into b select 'same', g, 1 from generate_series(12000, 14000) g",
                        "update b set c = c + 1 where a = 'same'",
                        "update b set c = c + 1 where a = 'same'",
                        "vacuum (index_cleanup on) b",
                        "reindex table b"),
                script(
                        "columns and constraints changed",
                        "create table d(id int primary key, v varchar(20))",
                        "insert into d select g, 'v' || g from generate_series(1, 1000) g",
                        "alter table d add column e int not null default 3",
                        "alter table d alter e type bigint",
                        "create table f(id int references d)",
                        "insert into f select g from generate_series(1, 500) g",
                        "alter table d drop column v",
                        "update d set e = e + 1",
                        "create materialized view m as select id, e from d",
                        "refresh materialized view m",
                        "create table p(id int, v text) partition by range (id)",
                        "create table p1 partition of p for values from (0) to (500)",
                        "create table p2 partition of p for values from (500) to (1000)",
                        "insert into p select g, 'p' from generate_series(0, 999) g",
                        "update p set id = id + 400 where id < 100",
                        "drop table p1",
                        "create sequence s owned by d.id",
                        "alter sequence s restart 77",
                        "drop table d cascade",
                        "comment on table f is 'comment'",
                        "analyze"),
                script(
                        "logical messages and restore points",
                        "select pg_logical_emit_message(false, 'a', repeat('m', 20000))",
                        "select pg_logical_emit_message(true, 'a', 'm')",
                        "select pg_create_restore_point('here')",
                        "select pg_switch_wal()",
                        "create table after_switch(id int)",
                        "select pg_switch_wal()",
                        "insert into after_switch values (1)"),
                new Script(
                        "wal_level logical",
                        List.of(
                                "create table w(id int primary key, v text)",
                                "alter table w replica identity full"),
                        List.of(
                                "insert into w select g, repeat('w', 3000) from generate_series(1, 100) g",
                                "update w set v = v || 'x'",
                                "delete from w where id < 50",
                                "truncate w",
                                "insert into w values (1, 'x')"),
                        Map.of("wal_level", "logical")),
                new Script(
                        "wal_level minimal",
                        List.of(
                                "create table w(id int, v text)",
                                "insert into w select g, 'v' from generate_series(1, 500) g"),
                        List.of(
                                "begin; create table n(id int primary key, v text); insert into n select g, repeat('n', 100) from generate_series(1, 2000) g; commit",
                                "begin; truncate w; insert into w select g, 'again' from generate_series(1, 3000) g; commit",
                                "create index on n (v)",
                                "update n set v = 'u' where id < 20"),
                        Map.of("wal_level", "minimal", "max_wal_senders", "0")),
                new Script(
                        "commit timestamps",
                        List.of("create table c(id int)"),
                        List.of(
                                "insert into c values (1)",
                                "insert into c values (2)",
                                "begin; insert into c values (3); savepoint s; insert into c values (4); release s; commit",
                                "do $$ begin for i in 1..2500 loop begin insert into c values (i); exception when others then null; end; end loop; end $$"),
                        Map.of("track_commit_timestamp", "on")),
                new Script(
                        "tablespaces",
                        List.of(
                                "create tablespace a location ''",
                                "create tablespace b location ''",
                                "create table o(id int) tablespace a",
                                "insert into o select generate_series(1, 500)"),
                        List.of(
                                "insert into o select generate_series(501, 700)",
                                "create table q(id int primary key, v text) tablespace b",
                                "insert into q select g, repeat('q', 100) from generate_series(1, 1000) g",
                                "alter table o set tablespace b",
                                "truncate q",
                                "create database in_b tablespace b strategy file_copy",
                                "\\in_b",
                                "create table i(id int)",
                                "insert into i select generate_series(1, 300)"),
                        Map.of("allow_in_place_tablespaces", "on")));
    }

    @ParameterizedTest
    @MethodSource("scripts")
    void equalPagesAfter(Script script) throws Exception {
        var settings =
                new CrashedCluster.Settings(
                        PostgresBinaries.judge(), false, true, "off", "4MB", 16, script.settings());
        try (CrashedCluster cluster =
                CrashedCluster.make(
                        settings,
                        server -> run(server, script.before()),
                        server -> run(server, script.after()),
                        server -> {})) {
            Path right = cluster.copy("kernel", CrashedCluster.Base.AT_CHECKPOINT);
            EqualPages.check(
                    cluster,
                    cluster.copy("postgres", CrashedCluster.Base.AT_CHECKPOINT),
                    right,
                    KernelRecovery.of(cluster, 2048, DropStrategy.LOOKUP));
            EqualPages.inspect(cluster, right);
            if (FULL) {
                right = cluster.copy("kernel-crash", CrashedCluster.Base.AT_CRASH);
                EqualPages.check(
                        cluster,
                        cluster.copy("postgres-crash", CrashedCluster.Base.AT_CRASH),
                        right,
                        KernelRecovery.of(cluster, 256, DropStrategy.FULL_SCAN));
            }
        }
    }

    private static void run(PostgresServer server, List<String> statements) throws SQLException {
        String database = "postgres";
        for (String sql : statements) {
            if (sql.startsWith("\\")) {
                database = sql.substring(1);
                continue;
            }
            try (var connection = server.connect(database);
                    var statement = connection.createStatement()) {
                statement.execute(sql);
            }
        }
    }
}
