package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFileAttributes;
import java.security.MessageDigest;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.cluster.Backend;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.cluster.CreateOptions;
import org.pgkernel.cluster.Table;
import org.pgkernel.cluster.TableOptions;
import org.pgkernel.cluster.TableScan;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.heap.TupleOutcome;
import org.pgkernel.heap.VacuumOptions;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WorkDirectory;
import org.pgkernel.xact.FreezeSettings;

/**
 * PostgreSQL 15 reads a table that we wrote from its first row on: inserted, updated, deleted,
 * frozen by our vacuum. Its files take the place of those of a table of the same shape; since
 * pointers into a TOAST table name its oid, ours is made to get the oid that PostgreSQL's has.
 */
class PostgresReadsOurTableIT {
    private static final int ROWS = 1200;
    private static final String SHAPE =
            "id int, n bigint, s smallint, flag bool, d double precision, f real, u uuid, nm name,"
                    + " short text, compressed text, outside text, mixed text, bin bytea";
    private static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(
                    Attribute.of("id", "int4"),
                    Attribute.of("n", "int8"),
                    Attribute.of("s", "int2"),
                    Attribute.of("flag", "bool"),
                    Attribute.of("d", "float8"),
                    Attribute.of("f", "float4"),
                    Attribute.of("u", "uuid"),
                    Attribute.of("nm", "name"),
                    Attribute.of("short", "text"),
                    Attribute.of("compressed", "text"),
                    Attribute.of("outside", "text").stored(Attribute.EXTERNAL),
                    Attribute.of("mixed", "text"),
                    Attribute.of("bin", "bytea"));
    private static final String ROW_TEXT =
            "coalesce(n::text,'-')||'|'||coalesce(s::text,'-')||'|'||coalesce(flag::text,'-')||'|'"
                    + "||coalesce(d::text,'-')||'|'||coalesce(f::text,'-')||'|'"
                    + "||coalesce(u::text,'-')||'|'||coalesce(nm::text,'-')||'|'"
                    + "||coalesce(short,'-')||'|'||coalesce(md5(compressed),'-')||'|'"
                    + "||coalesce(md5(outside),'-')||'|'||coalesce(md5(mixed),'-')||'|'"
                    + "||coalesce(encode(bin,'hex'),'-')";

    private final SplittableRandom random = new SplittableRandom(15_07);

    /** What a row is to say, by id. */
    private final Map<Integer, String> expected = new TreeMap<>();

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void rowsValuesAndMapsAreWhatWePut(boolean checksums) throws Exception {
        try (WorkDirectory work = WorkDirectory.create("pgkernel-it-ourtable")) {
            Path theirs = work.resolve("postgres");
            Path ours = work.resolve("ours");
            ClusterCopy.copy(Templates.of(PostgresBinaries.judge(), checksums, 16), theirs);
            int toastOid;
            String mainPath;
            String toastPath;
            try (PostgresServer server = server(theirs);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                // Numbers for tables of ours to be made before this one; two, for an odd oid.
                statement.execute("create table before1 (i int)");
                statement.execute("create table before2 (i int)");
                statement.execute("create table t (" + SHAPE + ")");
                statement.execute("alter table t alter outside set storage external");
                toastOid =
                        Integer.parseInt(
                                query(
                                        statement,
                                        "select reltoastrelid from pg_class where relname = 't'"));
                mainPath = query(statement, "select pg_relation_filepath('t')");
                toastPath =
                        query(statement, "select pg_relation_filepath(" + toastOid + "::regclass)");
                // Pages carry our LSNs: PostgreSQL's WAL has to be past them.
                for (int i = 0; i < 8; i++) {
                    statement.execute("select txid_current()");
                    statement.execute("select pg_switch_wal()");
                }
                server.stop(PostgresServer.StopMode.FAST);
            }
            int[] files = writeOurs(ours, toastOid, checksums);
            place(ours.resolve("base/5/" + files[0]), theirs.resolve(mainPath));
            place(ours.resolve("base/5/" + files[1]), theirs.resolve(toastPath));
            List<Integer> free =
                    RecordedFreeSpace.asWeTellIt(ours, "base/5/" + files[0], checksums);
            List<Integer> toastFree =
                    RecordedFreeSpace.asWeTellIt(ours, "base/5/" + files[1], checksums);
            try (PostgresServer server = server(theirs);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                statement.execute("create extension pg_freespacemap");
                String toast = "pg_toast.pg_toast_" + query(statement, "select 't'::regclass::oid");
                RecordedFreeSpace.assertEqual(
                        free, RecordedFreeSpace.asPostgresTellsIt(statement, "t"));
                RecordedFreeSpace.assertEqual(
                        toastFree, RecordedFreeSpace.asPostgresTellsIt(statement, toast));
                judge(statement, toastOid);
            }
        }
    }

    /** PostgreSQL's search begins at the root of our map's tree. */
    private static void postgresFillsWhatOurMapNames(Statement statement) throws SQLException {
        String size = query(statement, "select pg_relation_size('t')");
        int rows =
                Integer.parseInt(
                        query(statement, "select sum(avail) / 400 from pg_freespace('t')"));
        assertTrue(rows > 300, "more than two pages' worth: " + rows);
        statement.execute(
                "insert into t (id, short) select -i, repeat('x', 100) from generate_series(1, "
                        + rows
                        + ") i");
        assertEquals(size, query(statement, "select pg_relation_size('t')"));
        statement.execute("delete from t where id < 0");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("we read the free space map of a table that PostgreSQL vacuumed, and insert by it")
    void weReadPostgresFreeSpaceMap(boolean checksums) throws Exception {
        try (WorkDirectory work = WorkDirectory.create("pgkernel-it-ourtable")) {
            Path data = work.resolve("postgres");
            ClusterCopy.copy(Templates.of(PostgresBinaries.judge(), checksums, 16), data);
            String path;
            List<Integer> theirs;
            try (PostgresServer server = server(data);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                statement.execute("create extension pg_freespacemap");
                statement.execute("create table f (id int, word varchar(400))");
                // Past one leaf page of the map (4069 blocks), so that its upper levels matter.
                statement.execute(
                        "insert into f select i, repeat('w', 10 + i * 7 % 390)"
                                + " from generate_series(1, 160000) i");
                statement.execute("delete from f where id > 500 and id % 400 < id / 1000");
                statement.execute("vacuum f");
                path = query(statement, "select pg_relation_filepath('f')");
                theirs = RecordedFreeSpace.asPostgresTellsIt(statement, "f");
                server.stop(PostgresServer.StopMode.FAST);
            }
            assertTrue(theirs.size() > 4200, "blocks " + theirs.size());
            assertTrue(theirs.stream().distinct().count() > 30, "many categories");
            RecordedFreeSpace.assertEqual(
                    theirs, RecordedFreeSpace.asWeTellIt(data, path, checksums));
            long before = Files.size(data.resolve(path));
            int rows = theirs.stream().mapToInt(Integer::intValue).sum() / 800;
            assertTrue(rows > 300, "more than two pages' worth: " + rows);
            insertOurs(data, rows);
            assertEquals(before, Files.size(data.resolve(path)), "what is free is used first");
            try (PostgresServer server = server(data);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                assertEquals(
                        Integer.toString(rows),
                        query(statement, "select count(*) from f where id < 0"));
            }
        }
    }

    private static void insertOurs(Path data, int rows) {
        try (Cluster cluster =
                        Cluster.open(data, ClusterOptions.defaults().withSharedBuffers(256));
                Backend backend = cluster.newBackend("postgres")) {
            Table table = backend.table("public.f");
            RowValues row = table.newRow();
            backend.begin();
            for (int i = 1; i <= rows; i++) {
                row.setNumber(0, -i);
                row.setText(1, "x".repeat(100));
                table.insert(row);
            }
            backend.commit();
        }
    }

    /**
     * @return file numbers of the table and its TOAST table
     */
    private int[] writeOurs(Path data, int toastOid, boolean checksums) {
        Cluster.create(data, CreateOptions.defaults().withChecksums(checksums));
        try (Cluster cluster =
                        Cluster.open(data, ClusterOptions.defaults().withSharedBuffers(256));
                Backend backend = cluster.newBackend()) {
            createWithToastOid(backend, toastOid);
            fill(backend);
            change(backend);
            backend.vacuum("t", VacuumOptions.DEFAULT.withFreeze(FreezeSettings.FREEZE));
            int[] row = classRow(backend, "t");
            assertEquals(toastOid, row[2], "our TOAST table has PostgreSQL's oid");
            return new int[] {row[1], classRow(backend, "pg_toast_" + row[0])[1]};
        }
    }

    /**
     * Tables that need no TOAST table take two numbers each, until the next but one is the wanted.
     */
    private static void createWithToastOid(Backend backend, int toastOid) {
        TupleDescriptor narrow = TupleDescriptor.of(Attribute.of("i", "int4"));
        for (int i = 0; ; i++) {
            backend.begin();
            backend.createTable("filler" + i, narrow, TableOptions.DEFAULT);
            backend.commit();
            int oid = classRow(backend, "filler" + i)[0];
            assertTrue(oid < toastOid - 1, "oid " + oid + " of ours is past " + toastOid);
            if (oid == toastOid - 3) {
                break;
            }
        }
        backend.begin();
        backend.createTable("t", COLUMNS, TableOptions.DEFAULT);
        backend.commit();
    }

    /**
     * @return oid, file number, oid of the TOAST table
     */
    private static int[] classRow(Backend backend, String name) {
        Table classes = backend.table("pgk_class");
        RowValues row = classes.newRow();
        backend.begin();
        try (TableScan scan = classes.scan()) {
            while (scan.next()) {
                scan.read(row);
                String found = new String(row.bytes(1), StandardCharsets.UTF_8);
                if (found.substring(0, found.indexOf(0)).equals(name)) {
                    return new int[] {
                        (int) row.number(0), (int) row.number(2), (int) row.number(5)
                    };
                }
            }
        } finally {
            backend.rollback();
        }
        throw new AssertionError("no row of pgk_class for " + name);
    }

    private void fill(Backend backend) {
        Table table = backend.table("t");
        RowValues row = table.newRow();
        backend.begin();
        for (int id = 1; id <= ROWS; id++) {
            expected.put(id, values(row, id));
            table.insert(row);
        }
        backend.commit();
    }

    /** Every fifth row goes, every third that stays gets new values, some of it is undone. */
    private void change(Backend backend) {
        Table table = backend.table("t");
        RowValues row = table.newRow();
        for (int round = 0; round < 3; round++) {
            boolean undone = round == 1;
            backend.begin();
            try (TableScan scan = table.scan()) {
                while (scan.next()) {
                    scan.read(row);
                    int id = (int) row.number(0);
                    if (id % 5 == round) {
                        assertEquals(TupleOutcome.OK, table.delete(scan.tid()));
                        noteUnless(undone, () -> expected.remove(id));
                    } else if (id % 3 == round) {
                        String now = values(row, id);
                        assertEquals(TupleOutcome.OK, table.update(scan.tid(), row));
                        noteUnless(undone, () -> expected.put(id, now));
                    }
                }
            }
            if (undone) {
                backend.rollback();
            } else {
                backend.commit();
            }
        }
    }

    private static void noteUnless(boolean undone, Runnable note) {
        if (!undone) {
            note.run();
        }
    }

    /** Fills the row at random, about a tenth of it null. @return what {@link #ROW_TEXT} is then */
    private String values(RowValues row, int id) {
        row.clear();
        row.setNumber(0, id);
        String[] text = new String[12];
        long n = random.nextLong();
        text[0] = number(row, 1, n, Long.toString(n));
        short s = (short) random.nextInt();
        text[1] = number(row, 2, s, Short.toString(s));
        text[2] = number(row, 3, id & 1, (id & 1) == 1 ? "true" : "false");
        double d = random.nextInt(1_000_000) / 4.0;
        text[3] =
                number(
                        row,
                        4,
                        Double.doubleToRawLongBits(d),
                        d == (long) d ? "" + (long) d : "" + d);
        float f = random.nextInt(1000);
        text[4] = number(row, 5, Float.floatToRawIntBits(f), "" + (int) f);
        byte[] uuid = new byte[16];
        random.nextBytes(uuid);
        String hex = HexFormat.of().formatHex(uuid);
        text[5] =
                bytes(
                        row,
                        6,
                        uuid,
                        hex.replaceFirst("(.{8})(.{4})(.{4})(.{4})(.{12})", "$1-$2-$3-$4-$5"));
        byte[] name = new byte[64];
        byte[] word = ("name" + id).getBytes(StandardCharsets.UTF_8);
        System.arraycopy(word, 0, name, 0, word.length);
        text[6] = bytes(row, 7, name, "name" + id);
        text[7] = text(row, 8, letters(random.nextInt(120)), false);
        text[8] = text(row, 9, "pgkernel, page by page. ".repeat(random.nextInt(1, 300)), true);
        text[9] = text(row, 10, letters(random.nextInt(id % 41 == 0 ? 30_000 : 900)), true);
        text[10] =
                text(
                        row,
                        11,
                        (letters(50) + "-".repeat(random.nextInt(200)))
                                .repeat(id % 23 == 0 ? 120 : random.nextInt(1, 4)),
                        true);
        byte[] bin = new byte[random.nextInt(40)];
        random.nextBytes(bin);
        text[11] = bytes(row, 12, bin, HexFormat.of().formatHex(bin));
        return String.join("|", text);
    }

    private boolean isNull() {
        return random.nextInt(10) == 0;
    }

    private String number(RowValues row, int column, long value, String told) {
        if (isNull()) {
            row.setNull(column);
            return "-";
        }
        row.setNumber(column, value);
        return told;
    }

    private String bytes(RowValues row, int column, byte[] value, String told) {
        if (isNull()) {
            row.setNull(column);
            return "-";
        }
        row.setBytes(column, value);
        return told;
    }

    private String text(RowValues row, int column, String value, boolean asMd5) {
        if (isNull()) {
            row.setNull(column);
            return "-";
        }
        row.setText(column, value);
        return asMd5 ? md5(value) : value;
    }

    private String letters(int count) {
        StringBuilder text = new StringBuilder(count);
        for (int i = 0; i < count; i++) {
            text.append((char) ('a' + random.nextInt(26)));
        }
        return text.toString();
    }

    private static String md5(String value) {
        try {
            MessageDigest digest = MessageDigest.getInstance("MD5");
            return HexFormat.of().formatHex(digest.digest(value.getBytes(StandardCharsets.UTF_8)));
        } catch (java.security.NoSuchAlgorithmException e) {
            throw new AssertionError(e);
        }
    }

    /** Copies the forks that we have; those of PostgreSQL's go. Owners stay. */
    private static void place(Path from, Path to) throws IOException {
        PosixFileAttributes before = Files.readAttributes(to, PosixFileAttributes.class);
        for (String fork : new String[] {"", "_fsm", "_vm"}) {
            Path source = from.resolveSibling(from.getFileName() + fork);
            Path target = to.resolveSibling(to.getFileName() + fork);
            Files.deleteIfExists(target);
            if (Files.exists(source)) {
                Files.copy(source, target, StandardCopyOption.REPLACE_EXISTING);
                PosixFileAttributeView view =
                        Files.getFileAttributeView(target, PosixFileAttributeView.class);
                view.setOwner(before.owner());
                view.setGroup(before.group());
                view.setPermissions(before.permissions());
            }
        }
    }

    private void judge(Statement statement, int toastOid) throws SQLException {
        String toast = "pg_toast.pg_toast_" + query(statement, "select 't'::regclass::oid");
        statement.execute("reindex table " + toast);
        Map<Integer, String> found = new TreeMap<>();
        try (ResultSet rows = statement.executeQuery("select id, " + ROW_TEXT + " from t")) {
            while (rows.next()) {
                assertEquals(null, found.put(rows.getInt(1), rows.getString(2)));
            }
        }
        assertEquals(expected, found);
        for (String extension : new String[] {"amcheck", "pageinspect", "pg_visibility"}) {
            statement.execute("create extension " + extension);
        }
        for (String table : new String[] {"t", toast}) {
            String all = "select count(*)||' '||coalesce(min(msg),'') from verify_heapam('";
            assertEquals("0 ", query(statement, all + table + "')"), "amcheck of " + table);
            assertEquals(
                    "0",
                    count(
                            statement,
                            "pg_freespace('"
                                    + table
                                    + "') f, page_header(get_raw_page('"
                                    + table
                                    + "', f.blkno::int)) where avail <> greatest(upper - lower - 4, 0)"
                                    + " / 32 * 32"),
                    "the map says of " + table + " what its pages have");
            assertEquals("0", count(statement, "pg_check_visible('" + table + "')"));
            assertEquals("0", count(statement, "pg_check_frozen('" + table + "')"));
            assertEquals(
                    query(statement, "select pg_relation_size('" + table + "') / 8192"),
                    count(statement, "pg_visibility_map('" + table + "') where all_frozen"),
                    "every page of " + table + " is frozen");
            assertEquals(
                    "0",
                    query(
                            statement,
                            "select count(*) from generate_series(0, pg_relation_size('"
                                    + table
                                    + "') / 8192 - 1) b, heap_page_items(get_raw_page('"
                                    + table
                                    + "', b::int)) i where lp_flags = 1 and t_infomask & 768 <> 768"),
                    "every row version of " + table + " is frozen");
        }
        assertTrue(Integer.parseInt(count(statement, toast)) > 20, "values are stored out of line");
        postgresFillsWhatOurMapNames(statement);
        // PostgreSQL works on with it.
        statement.execute("update t set short = short || '!' where id % 2 = 0");
        statement.execute("vacuum (freeze) t");
        statement.execute("checkpoint");
        assertEquals(Integer.toString(expected.size()), count(statement, "t"));
        assertEquals(
                "0 ",
                query(
                        statement,
                        "select count(*)||' '||coalesce(min(msg),'') from verify_heapam('t')"));
    }

    private static String count(Statement statement, String from) throws SQLException {
        return query(statement, "select count(*) from " + from);
    }

    private static String query(Statement statement, String sql) throws SQLException {
        try (ResultSet result = statement.executeQuery(sql)) {
            result.next();
            return result.getString(1);
        }
    }

    private static PostgresServer server(Path data) {
        return PostgresServer.builder(PostgresBinaries.judge(), data)
                .settings(PostgresServer.quietSettings())
                .connectable()
                .start();
    }
}
