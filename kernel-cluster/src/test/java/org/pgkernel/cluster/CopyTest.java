package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.heap.RowValues;
import org.pgkernel.testkit.SimulatedDisk;

/** CSV files into tables; without WAL where it is minimal, over a simulated disk. */
class CopyTest {
    private static final CsvType[] TYPES = {CsvType.INT4, CsvType.TEXT};

    @TempDir private Path directory;
    private SimulatedDisk disk = new SimulatedDisk(1);
    private final TestRun.HandClock clock = new TestRun.HandClock();
    private Cluster cluster;
    private Backend backend;

    @BeforeEach
    void open() {
        Cluster.create(TestRun.DATA, TestRun.create(disk).withMinimalWal(true));
        reopen();
    }

    private void reopen() {
        cluster = Cluster.open(TestRun.DATA, TestRun.options(disk, clock));
        backend = cluster.newBackend();
    }

    private void crash(long outcome) {
        disk.crash();
        try {
            cluster.abandon();
        } catch (Error e) {
            // The disk is gone.
        }
        disk = disk.restart(outcome);
        reopen();
    }

    @AfterEach
    void close() {
        cluster.abandon();
    }

    private Path file(String content) throws IOException {
        return file(content.getBytes(StandardCharsets.UTF_8));
    }

    private Path file(byte[] content) throws IOException {
        return Files.write(directory.resolve("rows.csv"), content);
    }

    private List<String> copied(String content) throws IOException {
        backend.begin();
        try {
            Table table = backend.createTable("t", BackendTest.COLUMNS, TableOptions.DEFAULT);
            table.copyFrom(file(content), TYPES);
            return rows(table);
        } finally {
            backend.rollback();
        }
    }

    private String refused(byte[] content) throws IOException {
        Path file = file(content);
        backend.begin();
        try {
            Table table = backend.createTable("t", BackendTest.COLUMNS, TableOptions.DEFAULT);
            String message =
                    assertThrows(RefusedException.class, () -> table.copyFrom(file, TYPES))
                            .getMessage();
            return message.replace(file.toString(), "FILE");
        } finally {
            backend.rollback();
        }
    }

    private String refused(String content) throws IOException {
        return refused(content.getBytes(StandardCharsets.UTF_8));
    }

    private static List<String> rows(Table table) {
        List<String> found = new ArrayList<>();
        RowValues row = table.newRow();
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                scan.read(row);
                found.add(
                        (row.isNull(0) ? "null" : row.number(0))
                                + " "
                                + (row.isNull(1) ? "null" : "[" + row.text(1) + "]"));
            }
        }
        return found;
    }

    private List<String> committed() {
        backend.begin();
        try {
            return rows(backend.table("t"));
        } finally {
            backend.rollback();
        }
    }

    @Test
    @DisplayName("fields, quotes, nulls and line ends are understood as PostgreSQL's COPY does")
    void format() throws IOException {
        assertEquals(
                List.of("1 [one]", "-2 []", "3 null", "null [a,\"b\nc d]", "5 [Größe]"),
                copied("1,one\n-2,\"\"\n 3 ,\n,a\",\"\"b\nc\" d\n5,Größe"));
        assertEquals(List.of("1 [x]", "2 [y\n]"), copied("1,x\r\n2,\"y\n\"\r\n"));
        assertEquals(List.of("1 [x]", "2 [y]"), copied("1,x\r2,y\r"));
        assertEquals(List.of("1 [x]"), copied("1,x\n\\.\n2,never\n"));
        assertEquals(List.of(), copied(""));
        assertEquals(List.of("2147483647 [\t]"), copied("+2147483647,\t\n"));
    }

    @Test
    @DisplayName("records of any length, wherever the buffer ends")
    void lengths() throws IOException {
        StringBuilder content = new StringBuilder();
        List<String> expected = new ArrayList<>();
        for (int i = 0; i < 9000; i++) {
            String word = "w".repeat(i % 90) + (i % 7 == 0 ? ",\"" : "");
            content.append(i).append(",\"").append(word.replace("\"", "\"\"")).append("\"\n");
            expected.add(i + " [" + word + "]");
        }
        // Longer than the buffer; goes to the TOAST table.
        content.append("9000,").append("\"x\"").append("y".repeat(600_000)).append('\n');
        assertTrue(content.length() > 1_000_000);
        backend.begin();
        Table table = backend.createTable("t", BackendTest.COLUMNS, TableOptions.DEFAULT);
        assertEquals(9001, table.copyFrom(file(content.toString()), TYPES));
        RowValues row = table.newRow();
        int found = 0;
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                scan.read(row);
                // A short row may go to an earlier page.
                int id = (int) row.number(0);
                if (id < 9000) {
                    assertEquals(expected.get(id), id + " [" + row.text(1) + "]");
                } else {
                    assertEquals(600_001, table.value(row, 1).length);
                }
                found++;
            }
        }
        assertEquals(9001, found);
        backend.rollback();
    }

    @Test
    @DisplayName("what is no such row is refused, naming file and line")
    void errors() throws IOException {
        assertEquals("missing data for column \"word\": file=FILE line=2", refused("1,\"a\"\n2\n"));
        assertEquals(
                "extra data after last expected column: file=FILE line=3",
                refused("1,\"a\nb\"\n2,b,c\n"));
        assertEquals(
                "invalid input syntax for type integer: \"1x\" column=id: file=FILE line=1",
                refused("1x,a\n"));
        assertEquals(
                "value \"2147483648\" is out of range for type integer column=id: file=FILE line=1",
                refused("2147483648,a\n"));
        assertEquals(
                "value \"99999999999999999999\" is out of range for type integer column=id: file=FILE line=1",
                refused("99999999999999999999,a\n"));
        assertEquals("unterminated CSV quoted field: file=FILE line=1", refused("1,\"a\n"));
        assertEquals(
                "unquoted carriage return found in data: file=FILE line=2",
                refused("1,a\n2,b\r\n"));
        assertEquals("unquoted newline found in data: file=FILE line=2", refused("1,a\r2,b\nc\r"));
        assertEquals(
                "invalid byte sequence for encoding \"UTF8\": file=FILE line=1",
                refused(new byte[] {'1', ',', 'a', (byte) 0xC3, '(', '\n'}));
        assertEquals(
                "invalid byte sequence for encoding \"UTF8\": 0x00: file=FILE line=1",
                refused(new byte[] {'1', ',', 'a', 0, '\n'}));
        backend.begin();
        Table table = backend.createTable("t", BackendTest.COLUMNS, TableOptions.DEFAULT);
        Path missing = directory.resolve("missing.csv");
        assertEquals(
                "the file cannot be opened: file=" + missing,
                assertThrows(RefusedException.class, () -> table.copyFrom(missing, TYPES))
                        .getMessage());
    }

    private static String many(int rows) {
        StringBuilder content = new StringBuilder();
        for (int i = 0; i < rows; i++) {
            content.append(i).append(",word ").append(i).append('\n');
        }
        return content.toString();
    }

    private long walBytes(Runnable work) {
        long before = backend.kernel().primary.wal().insertLsn();
        work.run();
        return backend.kernel().primary.wal().insertLsn() - before;
    }

    @Test
    @DisplayName(
            "with minimal WAL the rows of a new table are not logged, and survive once committed")
    void notLogged() throws IOException {
        Path file = file(many(20_000));
        long logged =
                walBytes(
                        () -> {
                            backend.begin();
                            Table table =
                                    backend.createTable(
                                            "t", BackendTest.COLUMNS, TableOptions.DEFAULT);
                            table.copyFrom(file, TYPES);
                            rows(table); // sets hints
                            backend.commit();
                        });
        assertTrue(logged < 100_000, "logged bytes: " + logged);
        for (int outcome = 0; outcome < 8; outcome++) {
            crash(outcome);
            assertEquals(20_000, committed().size());
        }
    }

    @Test
    @DisplayName("after the commit the table's changes are logged as any")
    void loggedAfterwards() throws IOException {
        copyCommitted(100);
        long logged =
                walBytes(
                        () -> {
                            backend.begin();
                            RowValues row = backend.table("t").newRow();
                            row.setNumber(0, 7);
                            row.setText(1, "later");
                            backend.table("t").insert(row);
                            backend.commit();
                        });
        assertTrue(logged > 0);
        crash(3);
        assertEquals(101, committed().size());
        assertEquals("7 [later]", committed().get(100));
    }

    private void copyCommitted(int rows) throws IOException {
        backend.begin();
        backend.createTable("t", BackendTest.COLUMNS, TableOptions.DEFAULT)
                .copyFrom(file(many(rows)), TYPES);
        backend.commit();
    }

    @Test
    @DisplayName("a crash before the commit leaves nothing; a truncated table is as it was")
    void crashBeforeCommit() throws IOException {
        copyCommitted(100);
        backend.begin();
        backend.truncate("t");
        backend.table("t").copyFrom(file(many(5000)), TYPES);
        backend.createTable("u", BackendTest.COLUMNS, TableOptions.DEFAULT)
                .copyFrom(file(many(10)), TYPES);
        crash(5);
        assertEquals(100, committed().size());
        backend.begin();
        assertThrows(RefusedException.class, () -> backend.table("u"));
        backend.rollback();
    }

    @Test
    @DisplayName("a rollback, also one to a savepoint, removes the files")
    void rollback() throws IOException {
        backend.begin();
        backend.savepoint("s");
        backend.createTable("t", BackendTest.COLUMNS, TableOptions.DEFAULT)
                .copyFrom(file(many(500)), TYPES);
        backend.rollbackTo("s");
        backend.createTable("t", BackendTest.COLUMNS, TableOptions.DEFAULT)
                .copyFrom(file(many(7)), TYPES);
        backend.commit();
        assertEquals(7, committed().size());
        cluster.checkpoint();
        List<String> files = files();
        backend.begin();
        backend.createTable("u", BackendTest.COLUMNS, TableOptions.DEFAULT)
                .copyFrom(file(many(5000)), TYPES);
        backend.rollback();
        cluster.checkpoint(); // until then the first file stays, empty
        assertEquals(files, files());
    }

    /** Of tables; the catalogue's may grow a map. */
    private List<String> files() {
        return disk.list(TestRun.DATA + "/base/5").stream()
                .filter(name -> !name.startsWith("900"))
                .sorted()
                .toList();
    }

    @Test
    @DisplayName("a table that existed before is logged")
    void existingTable() throws IOException {
        copyCommitted(1);
        Path file = file(many(20_000));
        long logged =
                walBytes(
                        () -> {
                            backend.begin();
                            backend.table("t").copyFrom(file, TYPES);
                            backend.commit();
                        });
        assertTrue(logged > 300_000, "logged bytes: " + logged);
        crash(1);
        assertEquals(20_001, committed().size());
    }
}
