package org.pgkernel.benchmarks;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.cluster.Standby;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.FileTrees;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalReader;

/**
 * Replay of WAL that a real PostgreSQL 15.7 wrote: 200,000 records of INSERT into an indexed table,
 * UPDATE (HOT and not), DELETE. An operation is a record.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 4)
@Measurement(iterations = 6)
@Fork(
        value = 1,
        jvmArgsAppend = {
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow"
        })
public class RedoBenchmark {
    private static final int RECORDS = 200_000;

    /**
     * The gc profiler counts the copying of the data directory before each replay, too; this counts
     * the replay alone.
     */
    private static final com.sun.management.ThreadMXBean THREADS =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();

    private Scratch scratch;
    private long from;
    private long to;
    private Standby standby;

    @Setup(Level.Trial)
    public void makeWal() throws IOException, SQLException {
        scratch = new Scratch();
        PostgresBinaries binaries = PostgresBinaries.judge();
        var primary = scratch.resolve("primary");
        PostgresServer.initdb(binaries, primary, false);
        PostgresServer.Builder builder =
                PostgresServer.builder(binaries, primary)
                        .settings(PostgresServer.quietSettings())
                        .setting("full_page_writes", "off")
                        .setting("max_wal_size", "10GB")
                        .setting("wal_recycle", "off")
                        .setting("wal_keep_size", "10GB")
                        .connectable();
        try (PostgresServer server = builder.start()) {
            server.stop(PostgresServer.StopMode.FAST);
        }
        ClusterCopy.copy(primary, scratch.resolve("base"), List.of("postmaster.pid", "pg_wal/*"));
        try (PostgresServer server = builder.start()) {
            try (Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                statement.execute(
                        "CREATE TABLE t (id int PRIMARY KEY, n int, filler char(60)) WITH (fillfactor = 80)");
                statement.execute("INSERT INTO t SELECT g, 0, '' FROM generate_series(1, 1000) g");
                try (ResultSet row = statement.executeQuery("SELECT pg_current_wal_insert_lsn()")) {
                    row.next();
                    from = Lsn.parse(row.getString(1));
                }
                statement.execute(
                        "INSERT INTO t SELECT g, 0, '' FROM generate_series(1001, 60000) g");
                statement.execute("UPDATE t SET n = n + 1 WHERE id % 2 = 0");
                statement.execute("DELETE FROM t WHERE id % 5 = 0");
                statement.execute(
                        "INSERT INTO t SELECT g, 0, '' FROM generate_series(60001, 90000) g");
            }
            server.stop(PostgresServer.StopMode.FAST);
        }
        to = afterRecords(primary.resolve("pg_wal").toString());
    }

    private long afterRecords(String wal) {
        try (WalReader reader =
                new WalReader(new PosixDisk(), wal, TimelineHistory.of(1), 16 << 20, 0)) {
            reader.begin(from);
            for (int i = 0; i < RECORDS; i++) {
                if (reader.next() == null) {
                    throw new IllegalStateException("only " + i + " records: " + reader.end());
                }
            }
            return reader.endOfLastRecord();
        }
    }

    @Setup(Level.Invocation)
    public void open() {
        var directory = scratch.resolve("standby");
        ClusterCopy.copy(scratch.resolve("base"), directory);
        ClusterCopy.replaceWal(scratch.resolve("primary"), directory);
        standby =
                Cluster.openStandby(
                        directory, ClusterOptions.defaults().withSharedBuffers(131_072));
        standby.replayTo(from);
    }

    /** Bytes that the replaying thread allocated, of all records of an iteration together. */
    @AuxCounters(AuxCounters.Type.EVENTS)
    @State(Scope.Thread)
    public static class Allocation {
        public long bytesAllocatedByReplay;
    }

    @Benchmark
    @OperationsPerInvocation(RECORDS)
    public long replay(Allocation allocation) {
        long before = THREADS.getCurrentThreadAllocatedBytes();
        standby.replayTo(to);
        allocation.bytesAllocatedByReplay += THREADS.getCurrentThreadAllocatedBytes() - before;
        return standby.records();
    }

    @TearDown(Level.Invocation)
    public void close() {
        standby.close();
        FileTrees.delete(scratch.resolve("standby"));
    }

    @TearDown(Level.Trial)
    public void remove() {
        scratch.close();
    }
}
