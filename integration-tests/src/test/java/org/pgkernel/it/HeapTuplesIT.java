package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.Page;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.Detoaster;
import org.pgkernel.heap.HeapTupleHeader;
import org.pgkernel.heap.HeapTuples;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.ToastPlanner;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.heap.Varlena;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WorkDirectory;

/**
 * Rows that PostgreSQL stored: read from the page they are SQL's, formed again they are the bytes.
 */
class HeapTuplesIT {
    private static final long SEED = 20;

    private static WorkDirectory work;
    private static Path data;
    private static PostgresServer server;

    @BeforeAll
    static void start() {
        work = WorkDirectory.create("pgkernel-heap-tuples");
        data = work.resolve("data");
        ClusterCopy.copy(Templates.of(PostgresBinaries.judge(), true, 16), data);
        server =
                PostgresServer.builder(PostgresBinaries.judge(), data)
                        .settings(PostgresServer.quietSettings())
                        .connectable()
                        .start();
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            server.close();
        }
        work.close();
    }

    /** One stored tuple, by its t_ctid in SQL's notation. */
    private record Stored(UnsafeBuffer page, int at, int length) {
        /** From t_hoff on, and what of the header is not about transactions. */
        byte[] lasting() {
            return HeapTuplesIT.lasting(page, at, length);
        }
    }

    private static byte[] lasting(UnsafeBuffer in, int at, int length) {
        byte[] bytes = new byte[length - HeapTupleHeader.T_HOFF + 2];
        in.getBytes(at + HeapTupleHeader.T_HOFF, bytes, 2, bytes.length - 2);
        bytes[0] = (byte) (HeapTupleHeader.infomask(in, at) & 0x0F);
        bytes[1] = (byte) (HeapTupleHeader.infomask2(in, at) & HeapTupleHeader.HEAP_NATTS_MASK);
        return bytes;
    }

    private static Map<String, Stored> tuples(Statement sql, String table) throws Exception {
        sql.execute("checkpoint");
        String file;
        try (ResultSet row = sql.executeQuery("select pg_relation_filepath('" + table + "')")) {
            row.next();
            file = row.getString(1);
        }
        byte[] bytes = Files.readAllBytes(data.resolve(file));
        Map<String, Stored> tuples = new TreeMap<>();
        for (int block = 0; block < bytes.length / Page.SIZE; block++) {
            UnsafeBuffer page = new UnsafeBuffer(bytes, block * Page.SIZE, Page.SIZE);
            for (int i = 1; i <= Page.maxOffsetNumber(page); i++) {
                int itemId = Page.itemId(page, i);
                if (Page.lpIsNormal(itemId)) {
                    tuples.put(
                            "(" + block + "," + i + ")",
                            new Stored(page, Page.lpOffset(itemId), Page.lpLength(itemId)));
                }
            }
        }
        return tuples;
    }

    private static String letters(Random random, int length) {
        int letters = 1 + random.nextInt(26);
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < length; i++) {
            text.append((char) ('a' + random.nextInt(letters)));
        }
        return text.toString();
    }

    private static final TupleDescriptor TYPES =
            TupleDescriptor.of(
                    Attribute.of("a", "int4"),
                    Attribute.of("b", "int8"),
                    Attribute.of("c", "text"),
                    Attribute.of("d", "bool"),
                    Attribute.of("e", "float8"),
                    Attribute.of("f", "name"),
                    Attribute.of("g", "timestamp"),
                    Attribute.of("h", "numeric"),
                    Attribute.of("i", "int2"),
                    Attribute.of("j", "bytea"),
                    Attribute.of("k", "float4"));

    private static final String COLUMNS =
            "a, b, c, d, e, f::text,"
                    + " (extract(epoch from g) * 1000000)::int8 - 946684800000000, h, i, j, k";

    private static void insertTypes(Connection connection) throws SQLException {
        Random random = new Random(SEED);
        try (PreparedStatement insert =
                connection.prepareStatement(
                        "insert into typed values (?, ?, ?, ?, ?, ?, '2001-01-01'::timestamp"
                                + " + ? * interval '1 ms', ?, ?, ?, ?)")) {
            for (int row = 0; row < 2000; row++) {
                Object[] values = {
                    random.nextInt(),
                    random.nextLong(),
                    letters(random, random.nextInt(random.nextInt(5) == 0 ? 700 : 140)),
                    random.nextBoolean(),
                    random.nextGaussian(),
                    letters(random, random.nextInt(64)),
                    random.nextInt(1_000_000_000),
                    java.math.BigDecimal.valueOf(random.nextInt(), random.nextInt(9)),
                    (short) random.nextInt(),
                    letters(random, random.nextInt(130)).getBytes(),
                    random.nextFloat()
                };
                boolean nulls = random.nextBoolean();
                for (int i = 0; i < values.length; i++) {
                    insert.setObject(i + 1, nulls && random.nextInt(3) == 0 ? null : values[i]);
                }
                insert.execute();
            }
        }
    }

    @Test
    void rowsOfManyTypesAreSqlsAndAreFormedToTheSameBytes() throws Exception {
        int compared = 0;
        try (Connection connection = server.connect("postgres");
                Statement sql = connection.createStatement()) {
            sql.execute(
                    "create table typed (a int4, b int8, c text, d bool, e float8, f name,"
                            + " g timestamp, h numeric, i int2, j bytea, k float4)");
            insertTypes(connection);
            Map<String, Stored> tuples = tuples(sql, "typed");
            RowValues row = new RowValues(TYPES);
            UnsafeBuffer formed = new UnsafeBuffer(new byte[Page.SIZE]);
            try (ResultSet rows =
                    sql.executeQuery("select ctid::text, " + COLUMNS + " from typed")) {
                while (rows.next()) {
                    String place = "seed " + SEED + " ctid " + rows.getString(1);
                    Stored tuple = tuples.get(rows.getString(1));
                    assertNotNull(tuple, place);
                    HeapTuples.deform(tuple.page, tuple.at, tuple.length, row);
                    compare(rows, row, place);
                    int length = HeapTuples.form(row, formed, 0);
                    assertArrayEquals(tuple.lasting(), lasting(formed, 0, length), place);
                    length = HeapTuples.form(fromSql(rows, row), formed, 0);
                    assertArrayEquals(tuple.lasting(), lasting(formed, 0, length), place);
                    compared++;
                }
            }
        }
        assertEquals(2000, compared);
    }

    private static void compare(ResultSet rows, RowValues row, String place) throws SQLException {
        for (int i = 0; i < TYPES.count(); i++) {
            boolean isNull = rows.getObject(i + 2) == null;
            assertEquals(isNull, row.isNull(i), place);
            if (isNull) {
                continue;
            }
            String column = place + " column " + TYPES.attribute(i).name();
            switch (i) {
                case 0, 1, 6, 8 -> assertEquals(rows.getLong(i + 2), row.number(i), column);
                case 2 -> assertEquals(rows.getString(i + 2), row.text(i), column);
                case 3 -> assertEquals(rows.getBoolean(i + 2), row.number(i) != 0, column);
                case 4 -> assertEquals(rows.getDouble(i + 2), row.doubleValue(i), column);
                case 5 ->
                        assertEquals(rows.getString(i + 2), row.text(i).replace("\0", ""), column);
                case 9 -> assertArrayEquals(rows.getBytes(i + 2), row.bytes(i), column);
                case 10 -> assertEquals(rows.getFloat(i + 2), row.floatValue(i), column);
                default -> assertTrue(row.bytes(i).length >= 2, column);
            }
        }
    }

    /** The row from SQL's values, the numeric from the page. */
    private static RowValues fromSql(ResultSet rows, RowValues read) throws SQLException {
        RowValues row = new RowValues(TYPES);
        for (int i = 0; i < TYPES.count(); i++) {
            if (rows.getObject(i + 2) == null) {
                continue;
            }
            switch (i) {
                case 2, 5 -> row.setText(i, rows.getString(i + 2));
                case 3 -> row.setNumber(i, rows.getBoolean(i + 2) ? 1 : 0);
                case 4 -> row.setDouble(i, rows.getDouble(i + 2));
                case 7 -> row.setBytes(i, read.bytes(i));
                case 9 -> row.setBytes(i, rows.getBytes(i + 2));
                case 10 -> row.setFloat(i, rows.getFloat(i + 2));
                default -> row.setNumber(i, rows.getLong(i + 2));
            }
        }
        return row;
    }

    private static final TupleDescriptor WIDE =
            TupleDescriptor.of(
                    Attribute.of("id", "int4"),
                    Attribute.of("x", "text"),
                    Attribute.of("e", "text").stored(Attribute.EXTERNAL),
                    Attribute.of("m", "text").stored(Attribute.MAIN),
                    Attribute.of("y", "text"));

    private static final TupleDescriptor CHUNK =
            TupleDescriptor.of(
                    Attribute.of("chunk_id", "oid"),
                    Attribute.of("chunk_seq", "int4"),
                    Attribute.of("chunk_data", "bytea").stored(Attribute.PLAIN));

    /** Stored values by id, from the TOAST table's file. */
    private static Map<Integer, byte[]> toastTable(Statement sql, int oid) throws Exception {
        String table;
        try (ResultSet row = sql.executeQuery("select " + oid + "::regclass::text")) {
            row.next();
            table = row.getString(1);
        }
        Map<Integer, TreeMap<Long, byte[]>> chunks = new HashMap<>();
        RowValues chunk = new RowValues(CHUNK);
        for (Stored tuple : tuples(sql, table).values()) {
            HeapTuples.deform(tuple.page, tuple.at, tuple.length, chunk);
            chunks.computeIfAbsent((int) chunk.number(0), k -> new TreeMap<>())
                    .put(chunk.number(1), chunk.bytes(2));
        }
        Map<Integer, byte[]> values = new HashMap<>();
        chunks.forEach(
                (id, parts) -> {
                    ByteArrayOutputStream whole = new ByteArrayOutputStream();
                    parts.values().forEach(whole::writeBytes);
                    values.put(id, whole.toByteArray());
                });
        return values;
    }

    @Test
    void longRowsAreCompressedAndMovedOutOfLineToTheSameBytes() throws Exception {
        Random random = new Random(SEED);
        int[] kinds = new int[3];
        try (Connection connection = server.connect("postgres");
                Statement sql = connection.createStatement()) {
            sql.execute("create table wide (id int4, x text, e text, m text, y text)");
            sql.execute("alter table wide alter e set storage external, alter m set storage main");
            try (PreparedStatement insert =
                    connection.prepareStatement("insert into wide values (?, ?, ?, ?, ?)")) {
                for (int id = 0; id < 600; id++) {
                    insert.setInt(1, id);
                    for (int i = 2; i <= 5; i++) {
                        int most = random.nextInt(5) == 0 ? 20_000 : 2000;
                        String text = letters(random, random.nextInt(most));
                        insert.setString(i, random.nextInt(4) == 0 ? null : text);
                    }
                    insert.execute();
                }
            }
            int oid;
            try (ResultSet row =
                    sql.executeQuery(
                            "select reltoastrelid from pg_class where oid = 'wide'::regclass")) {
                row.next();
                oid = row.getInt(1);
            }
            Map<String, Stored> tuples = tuples(sql, "wide");
            Map<Integer, byte[]> toast = toastTable(sql, oid);
            try (ResultSet rows = sql.executeQuery("select ctid::text, wide.* from wide")) {
                while (rows.next()) {
                    compareToasted(rows, tuples.get(rows.getString(1)), oid, toast, kinds);
                }
            }
        }
        assertTrue(
                Arrays.stream(kinds).allMatch(n -> n > 50),
                "plain, compressed, external: " + Arrays.toString(kinds));
    }

    private static void compareToasted(
            ResultSet rows, Stored tuple, int oid, Map<Integer, byte[]> toast, int[] kinds)
            throws SQLException {
        String place = "seed " + SEED + " ctid " + rows.getString(1);
        RowValues stored = new RowValues(WIDE);
        HeapTuples.deform(tuple.page, tuple.at, tuple.length, stored);
        RowValues ours = new RowValues(WIDE);
        ours.setNumber(0, rows.getInt(2));
        for (int i = 1; i < 5; i++) {
            if (rows.getString(i + 2) != null) {
                ours.setText(i, rows.getString(i + 2));
            }
        }
        Map<Integer, ByteArrayOutputStream> moved = new HashMap<>();
        if (ToastPlanner.needed(ours)) {
            int[] next = {1};
            new ToastPlanner(WIDE)
                    .plan(
                            ours,
                            null,
                            oid,
                            () -> next[0]++,
                            (id, sequence, from, offset, length) -> {
                                byte[] part = new byte[length];
                                from.getBytes(offset, part);
                                moved.computeIfAbsent(id, k -> new ByteArrayOutputStream())
                                        .writeBytes(part);
                            },
                            (id, size) -> {});
        }
        UnsafeBuffer left = new UnsafeBuffer(0, 0);
        UnsafeBuffer right = new UnsafeBuffer(0, 0);
        Detoaster detoaster = new Detoaster();
        for (int i = 1; i < 5; i++) {
            String column = place + " column " + WIDE.attribute(i).name();
            assertEquals(stored.isNull(i), ours.isNull(i), column);
            if (stored.isNull(i)) {
                continue;
            }
            stored.wrap(i, left);
            assertEquals(stored.isExternal(i), ours.isExternal(i), column);
            byte[] value;
            if (stored.isExternal(i)) {
                ours.wrap(i, right);
                byte[] theirs = toast.get(Varlena.valueId(left, 0));
                byte[] mine = moved.get(Varlena.valueId(right, 0)).toByteArray();
                assertArrayEquals(theirs, mine, column);
                // The same pointer but for the id, which the server chose.
                right.putInt(10, left.getInt(10));
                assertEquals(left, right, column);
                value = detoaster.value(left, 0, theirs);
                kinds[2]++;
            } else {
                value = detoaster.value(left, 0);
                kinds[Varlena.isCompressed(left, 0) ? 1 : 0]++;
            }
            assertEquals(rows.getString(i + 2), new String(value), column);
        }
        UnsafeBuffer formed = new UnsafeBuffer(new byte[2 * Page.SIZE]);
        int length = HeapTuples.form(ours, formed, 0);
        assertArrayEquals(tuple.lasting(), lasting(formed, 0, length), place);
    }
}
