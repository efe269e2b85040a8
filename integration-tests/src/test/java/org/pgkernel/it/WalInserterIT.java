package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WorkDirectory;
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

    private static PostgresServer server(WorkDirectory work) {
        return PostgresServer.builder(PostgresBinaries.judge(), work.resolve("data"))
                .settings(PostgresServer.quietSettings())
                .setting("wal_keep_size", "1GB")
                .connectable()
                .start();
    }

    private void insertInto(String directory, ControlFile control) throws Exception {
        long end;
        long last;
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
            end = reader.endOfLastRecord();
            last = reader.lastRecord();
            assertEquals(0, reader.missingContinuation());
        }
        try (WalInserter inserter =
                new WalInserter(
                        disk,
                        directory,
                        1,
                        SEGMENT,
                        control.systemIdentifier(),
                        end,
                        last,
                        0,
                        redo,
                        1 << 20)) {
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
