package org.pgkernel.cli.repro;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.pgkernel.base.Lsn;
import org.pgkernel.cli.SharedBuffers;
import org.pgkernel.cli.UserException;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;

/**
 * The published test on a real standby: it replays the WAL before the pause LSN, is paused, gets
 * the rest, then resume → accepts connections as a primary is timed.
 */
final class RivalRun {
    private static final long POLL_MILLIS = 2;
    private static final long LIMIT_SECONDS = 1800;

    private final PostgresBinaries binaries;
    private final Dataset dataset;
    private final Path data;

    /**
     * @param data the standby's data directory, which must not exist
     */
    RivalRun(PostgresBinaries binaries, Dataset dataset, Path data) {
        this.binaries = binaries;
        this.dataset = dataset;
        this.data = data;
    }

    RivalMeasurement run(SharedBuffers sharedBuffers, int repetition) {
        ClusterCopy.copy(dataset.baseCopy(), data, List.of("postmaster.pid", "pg_wal/*"));
        try {
            copyWal(false);
            Files.createFile(data.resolve("standby.signal"));
            PostgresServer.Builder builder =
                    PostgresServer.builder(binaries, data)
                            .settings(Primary.settings())
                            .connectable()
                            .timeoutSeconds(1800);
            builder.setting("hot_standby", "on").setting("wal_retrieve_retry_interval", "10ms");
            // As on the published standby: what recovery must make durable is made durable.
            builder.setting("fsync", "on").setting("shared_buffers", sharedBuffers.text());
            try (PostgresServer server = builder.startWithoutWaiting()) {
                double seconds = measure(server);
                server.stop(PostgresServer.StopMode.FAST);
                return new RivalMeasurement(
                        "PostgreSQL " + binaries.version(),
                        dataset.operation(),
                        dataset.toast(),
                        sharedBuffers,
                        repetition,
                        seconds);
            }
        } catch (IOException | SQLException e) {
            throw new UserException(
                    "PostgreSQL " + binaries.version() + " could not be timed: " + e.getMessage(),
                    e);
        }
    }

    private double measure(PostgresServer server) throws SQLException, IOException {
        // 13 writes "read only", 14 and later "read-only".
        await(server, "hot standby", () -> server.logSinceStart().contains("ready to accept read"));
        try (Connection connection = server.connect("postgres");
                Statement statement = connection.createStatement()) {
            await(
                    server,
                    "replay up to the pause",
                    () ->
                            replayed(statement) >= dataset.pauseLsn() - Primary.SEGMENT_SIZE
                                    && idle(statement));
            statement.execute("SELECT pg_wal_replay_pause()");
            copyWal(true);
            await(
                    server,
                    "the pause",
                    () -> server.logSinceStart().contains("recovery has paused"));
            long before = replayed(statement);
            long began = System.nanoTime();
            statement.execute("SELECT pg_wal_replay_resume()");
            if (binaries.major() >= 14) {
                // These pause while they wait for WAL: promoted at once, they would not look for
                // the new WAL.
                await(server, "the resume", () -> replayed(statement) != before);
            }
            statement.execute("SELECT pg_promote(false)");
            await(
                    server,
                    "the promotion",
                    () ->
                            server.logSinceStart()
                                    .contains("database system is ready to accept connections"));
            return (System.nanoTime() - began) / 1e9;
        }
    }

    private long lastReplayed;

    /** The replay position stands still between two looks and nothing more can come. */
    private boolean idle(Statement statement) {
        long now = replayed(statement);
        boolean idle = now == lastReplayed;
        lastReplayed = now;
        if (!idle) {
            pause(200);
        }
        return idle;
    }

    private static long replayed(Statement statement) {
        try (ResultSet row = statement.executeQuery("SELECT pg_last_wal_replay_lsn()")) {
            row.next();
            return Lsn.parse(row.getString(1));
        } catch (SQLException e) {
            throw new UserException("the standby refused a query: " + e.getMessage(), e);
        }
    }

    /**
     * Segments before the pause LSN, or those from it on, each under its final name only when
     * whole.
     */
    private void copyWal(boolean measured) throws IOException {
        Path target = data.resolve("pg_wal");
        long pauseSegment = dataset.pauseLsn() / Primary.SEGMENT_SIZE;
        try (Stream<Path> files = Files.list(dataset.wal())) {
            for (Path file :
                    files.filter(f -> f.getFileName().toString().matches("[0-9A-F]{24}"))
                            .sorted()
                            .toList()) {
                String name = file.getFileName().toString();
                long segment =
                        Long.parseLong(name.substring(8, 16), 16) * 256
                                + Long.parseLong(name.substring(16), 16);
                if (segment >= pauseSegment == measured) {
                    Path part = data.resolve("incoming");
                    Files.copy(file, part);
                    giveToOwner(target, part);
                    Files.move(part, target.resolve(name), StandardCopyOption.ATOMIC_MOVE);
                }
            }
        }
    }

    private static void giveToOwner(Path like, Path file) throws IOException {
        Files.setOwner(file, Files.getOwner(like));
    }

    private static void await(PostgresServer server, String what, BooleanSupplier reached) {
        long deadline = System.nanoTime() + LIMIT_SECONDS * 1_000_000_000L;
        while (!reached.getAsBoolean()) {
            if (!server.isRunning()) {
                throw new UserException(
                        server + " ended while we waited for " + what + ":\n" + server.logTail());
            }
            if (System.nanoTime() > deadline) {
                throw new UserException(
                        server + " did not reach " + what + " in " + LIMIT_SECONDS + " s");
            }
            pause(POLL_MILLIS);
        }
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new UserException("interrupted");
        }
    }
}
