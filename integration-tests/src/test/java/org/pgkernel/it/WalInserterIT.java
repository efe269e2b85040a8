package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.Page;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WorkDirectory;
import org.pgkernel.wal.ImageCompression;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalInserter;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecordBuilder;

/**
 * A real PostgreSQL was killed; our inserter goes on in its WAL with records that change nothing,
 * from four threads, over a switch and a record of 9 MiB. PostgreSQL then recovers through them and
 * its pg_walinspect lists what we inserted.
 */
class WalInserterIT {
    private static final int SEGMENT = 16 << 20;

    /** (PostgreSQL: XLOG_NOOP.) */
    private static final int NOOP = 0x20;

    /** (PostgreSQL: XLOG_FPI.) */
    private static final int FPI = 0xB0;

    private final PosixDisk disk = new PosixDisk();

    /** Ends and lengths by start. */
    private final ConcurrentSkipListMap<Long, long[]> inserted = new ConcurrentSkipListMap<>();

    @Test
    void postgresRecoversThroughOurRecordsAndListsThem() throws Exception {
        try (WorkDirectory work = WorkDirectory.create("pgkernel-it-walinsert")) {
            ClusterCopy.copy(
                    Templates.of(PostgresBinaries.judge(), true, 16), work.resolve("data"));
            try (PostgresServer server = server(work);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                statement.execute("create extension pg_walinspect");
                statement.execute("checkpoint");
                statement.execute("create table t as select generate_series(1, 1000) x");
                server.kill();
            }
            String data = work.resolve("data").toString();
            ControlFile control = ControlFile.read(disk, data);
            insertInto(data + "/pg_wal", control);
            try (PostgresServer server = server(work);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                try (ResultSet count = statement.executeQuery("select count(*) from t")) {
                    count.next();
                    assertEquals(1000, count.getInt(1));
                }
                assertEquals(expected(), listed(statement));
            }
        }
    }

    /** PostgreSQL restores pages from images as we write them: plain, and by pglz. */
    @ParameterizedTest
    @EnumSource(names = {"OFF", "PGLZ"})
    void postgresRestoresOurImages(ImageCompression compression) throws Exception {
        try (WorkDirectory work = WorkDirectory.create("pgkernel-it-walimage")) {
            ClusterCopy.copy(
                    Templates.of(PostgresBinaries.judge(), true, 16), work.resolve("data"));
            Path file;
            try (PostgresServer server = server(work);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                statement.execute("create extension pg_walinspect");
                statement.execute(
                        "create table t as select x, repeat('a', 90) s from generate_series(1, 40) x");
                statement.execute("checkpoint");
                try (ResultSet path = statement.executeQuery("select pg_relation_filepath('t')")) {
                    path.next();
                    file = work.resolve("data").resolve(path.getString(1));
                }
                server.kill();
            }
            String data = work.resolve("data").toString();
            ControlFile control = ControlFile.read(disk, data);
            long[] place = new long[2];
            int imageBytes;
            try (WalInserter inserter = inserter(data + "/pg_wal", control)) {
                WalRecordBuilder builder = new WalRecordBuilder(compression);
                UnsafeBuffer page = new UnsafeBuffer(pageWithOtherLetters(file));
                int db = Integer.parseInt(file.getParent().getFileName().toString());
                int rel = Integer.parseInt(file.getFileName().toString());
                builder.begin(0, FPI, 0).image(0, 1663, db, rel, ForkNumber.MAIN, 0, page, true);
                imageBytes = builder.encodedLength() - 24 - 4 - 12 - 4;
                place[1] = inserter.insert(builder);
                place[0] = builder.startLsn();
                inserter.flush(place[1]);
            }
            try (PostgresServer server = server(work);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                try (ResultSet rows =
                        statement.executeQuery("select count(*), min(s), max(s), sum(x) from t")) {
                    rows.next();
                    assertEquals(40, rows.getInt(1));
                    assertEquals("b".repeat(90), rows.getString(2));
                    assertEquals("b".repeat(90), rows.getString(3));
                    assertEquals(820, rows.getInt(4));
                }
                try (ResultSet info =
                        statement.executeQuery(
                                "select record_type, fpi_length from pg_get_wal_record_info('"
                                        + Lsn.format(place[0])
                                        + "')")) {
                    info.next();
                    assertEquals("FPI", info.getString(1));
                    int length = info.getInt(2);
                    assertEquals(
                            imageBytes - (compression == ImageCompression.OFF ? 5 : 7), length);
                    assertEquals(
                            compression == ImageCompression.OFF, length > 4000, () -> "" + length);
                }
            }
        }
    }

    /** The first page of a table, the letter a in its rows made b. */
    private static byte[] pageWithOtherLetters(Path file) throws Exception {
        byte[] page = Arrays.copyOf(Files.readAllBytes(file), Page.SIZE);
        String bytes = new String(page, StandardCharsets.ISO_8859_1);
        return bytes.replace("a".repeat(90), "b".repeat(90)).getBytes(StandardCharsets.ISO_8859_1);
    }

    private static PostgresServer server(WorkDirectory work) {
        return PostgresServer.builder(PostgresBinaries.judge(), work.resolve("data"))
                .settings(PostgresServer.quietSettings())
                .setting("wal_keep_size", "1GB")
                .connectable()
                .start();
    }

    /** Goes on behind the last record that the killed server left. */
    private WalInserter inserter(String directory, ControlFile control) {
        long redo = control.checkPointRedo();
        try (WalReader reader =
                new WalReader(
                        disk,
                        directory,
                        TimelineHistory.of(1),
                        SEGMENT,
                        control.systemIdentifier())) {
            reader.begin(redo);
            while (reader.next() != null) {
                // to the end
            }
            assertEquals(0, reader.missingContinuation());
            return new WalInserter(
                    disk,
                    directory,
                    1,
                    SEGMENT,
                    control.systemIdentifier(),
                    reader.endOfLastRecord(),
                    reader.lastRecord(),
                    0,
                    redo,
                    1 << 20);
        }
    }

    private void insertInto(String directory, ControlFile control) throws Exception {
        try (WalInserter inserter = inserter(directory, control)) {
            Thread[] threads = new Thread[4];
            for (int i = 0; i < threads.length; i++) {
                int thread = i;
                threads[i] = new Thread(() -> insertSome(inserter, thread));
                threads[i].start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            inserter.flush(inserter.insertLsn());
        }
        assertEquals(4 * 300 + 1, inserted.size());
    }

    private void insertSome(WalInserter inserter, int thread) {
        WalRecordBuilder builder = new WalRecordBuilder();
        UnsafeBuffer data = new UnsafeBuffer(new byte[9 << 20]);
        for (int i = 0; i < 300; i++) {
            int length = thread == 1 && i == 150 ? 9 << 20 : 1 + i * (thread + 1) * 13;
            long end = inserter.insert(builder.begin(0, NOOP, 0).data(data, 0, length));
            inserted.put(builder.startLsn(), new long[] {end, length});
            if (thread == 2 && i == 100) {
                end = inserter.switchSegment(builder);
                // PostgreSQL's reader takes the rest of the segment for the record's.
                long segmentEnd = end + SEGMENT - 1 & -(long) SEGMENT;
                inserted.put(builder.startLsn(), new long[] {segmentEnd, 0});
            } else if (i % 60 == 0) {
                inserter.flush(end);
            }
        }
    }

    private Map<String, String> expected() {
        Map<String, String> all = new TreeMap<>();
        inserted.forEach((start, e) -> all.put(Lsn.format(start), Lsn.format(e[0]) + " " + e[1]));
        return all;
    }

    private Map<String, String> listed(Statement statement) throws Exception {
        Map<String, String> all = new TreeMap<>();
        try (ResultSet rows =
                statement.executeQuery(
                        "select start_lsn, end_lsn, main_data_length, record_type from"
                                + " pg_get_wal_records_info('"
                                + Lsn.format(inserted.firstKey())
                                + "', '"
                                + Lsn.format(inserted.lastEntry().getValue()[0])
                                + "')")) {
            while (rows.next()) {
                String type = rows.getString(4);
                assertTrue(type.equals("NOOP") || type.equals("SWITCH"), type);
                all.put(rows.getString(1), rows.getString(2) + " " + rows.getLong(3));
            }
        }
        return all;
    }
}
