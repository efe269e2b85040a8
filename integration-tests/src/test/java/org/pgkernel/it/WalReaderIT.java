package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.Statement;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WorkDirectory;
import org.pgkernel.testkit.Workloads;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;

/** Our reader and the server's own (pg_walinspect) see the same records in the same WAL. */
class WalReaderIT {
    @Test
    void readerAndPgWalinspectAgreeOnEveryRecord() throws Exception {
        try (WorkDirectory work = WorkDirectory.create("pgkernel-it-wal")) {
            ClusterCopy.copy(
                    Templates.of(PostgresBinaries.judge(), true, 16), work.resolve("data"));
            try (PostgresServer server =
                            PostgresServer.builder(PostgresBinaries.judge(), work.resolve("data"))
                                    .settings(PostgresServer.quietSettings())
                                    .setting("wal_compression", "pglz")
                                    .connectable()
                                    .start();
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                statement.execute("create extension pg_walinspect");
                statement.execute("checkpoint");
                String begin =
                        Workloads.text(connection, "select redo_lsn from pg_control_checkpoint()");
                Workloads.everything(server);
                String end = Workloads.text(connection, "select pg_current_wal_flush_lsn()");
                connection.setAutoCommit(false);
                statement.setFetchSize(5000);
                int records = 0;
                int images = 0;
                byte[] page = new byte[8192];
                var buffer = new org.agrona.concurrent.UnsafeBuffer(page);
                try (ResultSet rows =
                                statement.executeQuery(
                                        "select start_lsn, end_lsn, prev_lsn, xid::text::bigint, record_length, main_data_length, fpi_length,"
                                                + " coalesce(array_length(string_to_array(block_ref, 'blkref #'), 1) - 1, 0) from pg_get_wal_records_info('"
                                                + begin
                                                + "', '"
                                                + end
                                                + "') order by start_lsn");
                        WalReader reader =
                                new WalReader(
                                        new PosixDisk(),
                                        work.resolve("data/pg_wal").toString(),
                                        TimelineHistory.of(1),
                                        16 << 20,
                                        0)) {
                    reader.begin(Lsn.parse(begin));
                    while (rows.next()) {
                        WalRecord record = reader.next();
                        String place = "lsn=" + rows.getString(1);
                        assertNotNull(record, () -> place + " but the reader says " + reader.end());
                        assertEquals(rows.getString(1), Lsn.format(record.lsn()), place);
                        assertEquals(rows.getString(2), Lsn.format(record.endLsn()), place);
                        assertEquals(rows.getString(3), Lsn.format(record.prevLsn()), place);
                        assertEquals(rows.getLong(4), Integer.toUnsignedLong(record.xid()), place);
                        assertEquals(rows.getLong(5), record.totalLength(), place);
                        assertEquals(rows.getLong(6), record.dataLength(), place);
                        int imageLength = 0;
                        int blocks = 0;
                        for (int id = 0; id <= record.maxBlockId(); id++) {
                            if (record.hasBlock(id)) {
                                blocks++;
                                if (record.hasImage(id)) {
                                    imageLength += record.imageLength(id);
                                    record.restoreImage(id, buffer);
                                    images++;
                                }
                            }
                        }
                        assertEquals(rows.getLong(7), imageLength, place);
                        assertEquals(rows.getLong(8), blocks, place);
                        records++;
                    }
                }
                assertTrue(records > 50_000, "records " + records);
                assertTrue(images > 200, "images " + images);
            }
        }
    }
}
