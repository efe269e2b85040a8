package org.pgkernel.testkit;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;

/**
 * A running PostgreSQL server over a data directory, child of this process.
 *
 * <p>Nothing here connects to the server unless {@link #connect} is called: readiness is read from
 * {@code postmaster.pid}, so that a server that only recovers and stops sets no hint bit and writes
 * no row. Settings go on the command line; the directory's files stay as they are. Root runs the
 * server as an unprivileged user, to whom the data directory is given (chown, mode 0700) at each
 * start.
 *
 * <p>No server outlives its owner: {@link #close} stops it, a shutdown hook stops what is left when
 * the JVM ends, and a watchdog process stops it when the JVM was killed. Every wait has a limit.
 * Not thread-safe, except {@link #connect}.
 */
public final class PostgresServer implements AutoCloseable {
    /**
     * How to stop: {@code FAST} writes a shutdown checkpoint, {@code IMMEDIATE} writes nothing and
     * leaves a crashed cluster.
     */
    public enum StopMode {
        FAST("INT"),
        IMMEDIATE("QUIT");

        private final String signal;

        StopMode(String signal) {
            this.signal = signal;
        }
    }

    private static final int BIND_ATTEMPTS = 5;

    private final PostgresBinaries binaries;
    private final Path dataDirectory;
    private final Path log;
    private final long logStart;
    private final Path socketDirectory;
    private final int port;
    private final int timeoutSeconds;
    private final Process process;
    private final Process watchdog;

    private PostgresServer(
            Builder builder,
            Path log,
            long logStart,
            Path socketDirectory,
            int port,
            Process process,
            Process watchdog) {
        this.binaries = builder.binaries;
        this.dataDirectory = builder.dataDirectory;
        this.timeoutSeconds = builder.timeoutSeconds;
        this.log = log;
        this.logStart = logStart;
        this.socketDirectory = socketDirectory;
        this.port = port;
        this.process = process;
        this.watchdog = watchdog;
    }

    /**
     * Creates a cluster: superuser {@code postgres}, trust authentication, UTF8, no locale, 16 MB
     * segments.
     *
     * @param dataDirectory must not exist, or be empty; its parent must be enterable by the
     *     server's user
     * @param checksums whether pages carry checksums
     */
    public static void initdb(PostgresBinaries binaries, Path dataDirectory, boolean checksums) {
        initdb(binaries, dataDirectory, checksums, 16);
    }

    /**
     * The same with WAL segments of {@code walSegmentMegabytes} MB, a power of two from 1 to 1024.
     */
    public static void initdb(
            PostgresBinaries binaries,
            Path dataDirectory,
            boolean checksums,
            int walSegmentMegabytes) {
        try {
            Files.createDirectories(dataDirectory);
            Files.setPosixFilePermissions(
                    dataDirectory, PosixFilePermissions.fromString("rwx------"));
        } catch (IOException e) {
            throw new PostgresServerException(
                    "cannot create a data directory: file=" + dataDirectory, e);
        }
        ServerUser user = ServerUser.current();
        user.own(dataDirectory);
        List<String> command =
                new ArrayList<>(
                        List.of(
                                binaries.program("initdb").toString(),
                                "-D",
                                dataDirectory.toString(),
                                "-U",
                                "postgres",
                                "-A",
                                "trust",
                                "-E",
                                "UTF8",
                                "--no-locale",
                                "--wal-segsize=" + walSegmentMegabytes,
                                "-N"));
        if (checksums) {
            command.add("-k");
        }
        Processes.runChecked(user.command(command), 120);
    }

    /** A server of this release over this directory. */
    public static Builder builder(PostgresBinaries binaries, Path dataDirectory) {
        return new Builder(binaries, dataDirectory);
    }

    /**
     * The settings under which crash recovery by PostgreSQL changes nothing but what redo changes,
     * and stays comparable with ours.
     */
    public static Map<String, String> quietSettings() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("autovacuum", "off");
        settings.put("hot_standby", "off");
        settings.put("max_logical_replication_workers", "0");
        // The background writer logs a snapshot of running transactions now and then; that would
        // move the end of WAL.
        settings.put("bgwriter_delay", "10s");
        // No power failure is under test: what the server wrote is what a copy finds.
        settings.put("fsync", "off");
        // In the data directory, so that a killed server leaves nothing in /dev/shm.
        settings.put("dynamic_shared_memory_type", "mmap");
        settings.put("timezone", "UTC");
        settings.put("log_timezone", "UTC");
        return settings;
    }

    /**
     * Lets PostgreSQL recover a crashed cluster and shut it down, without any connection being
     * made.
     *
     * @return what the server logged meanwhile
     */
    public static String recover(
            PostgresBinaries binaries, Path dataDirectory, Map<String, String> settings) {
        try (PostgresServer server =
                builder(binaries, dataDirectory)
                        .settings(quietSettings())
                        .settings(settings)
                        .start()) {
            server.stop(StopMode.FAST);
            return server.logSinceStart();
        }
    }

    /** What to start. */
    public static final class Builder {
        private final PostgresBinaries binaries;
        private final Path dataDirectory;
        private final Map<String, String> settings = new LinkedHashMap<>();
        private boolean tcp;
        private int timeoutSeconds = 120;

        private Builder(PostgresBinaries binaries, Path dataDirectory) {
            this.binaries = binaries;
            this.dataDirectory = dataDirectory.toAbsolutePath();
        }

        public Builder setting(String name, String value) {
            settings.put(name, value);
            return this;
        }

        public Builder settings(Map<String, String> all) {
            settings.putAll(all);
            return this;
        }

        /**
         * Listen on 127.0.0.1 at a free port, as {@link PostgresServer#connect} needs; otherwise
         * only a private socket exists.
         */
        public Builder connectable() {
            tcp = true;
            return this;
        }

        /** Limit of start (recovery included) and of stop, seconds; 120 unless said. */
        public Builder timeoutSeconds(int seconds) {
            timeoutSeconds = seconds;
            return this;
        }

        /**
         * Starts the server and waits until it says it is ready, recovery done.
         *
         * @throws PostgresServerException with the end of its log, when it does not get there
         */
        public PostgresServer start() {
            return start(true);
        }

        /**
         * Starts without waiting for the end of recovery: for a standby that stays in recovery. See
         * {@link PostgresServer#awaitReady}.
         */
        public PostgresServer startWithoutWaiting() {
            return start(false);
        }

        private PostgresServer start(boolean wait) {
            for (int attempt = 1; ; attempt++) {
                PostgresServer server = launch();
                try {
                    if (wait) {
                        server.awaitReady();
                    }
                    return server;
                } catch (PostgresServerException e) {
                    server.killQuietly();
                    // Somebody took the port between our look and the server's bind.
                    if (!tcp
                            || attempt == BIND_ATTEMPTS
                            || !server.logSinceStart().contains("could not bind")) {
                        throw e;
                    }
                }
            }
        }

        private PostgresServer launch() {
            Path log = dataDirectory.resolveSibling(dataDirectory.getFileName() + ".log");
            ServerUser user = ServerUser.current();
            try {
                if (!Files.isDirectory(dataDirectory)) {
                    throw new PostgresServerException(
                            "not a data directory: file=" + dataDirectory);
                }
                Files.setPosixFilePermissions(
                        dataDirectory, PosixFilePermissions.fromString("rwx------"));
                user.own(dataDirectory);
                // A socket's path holds 107 bytes; the data directory's may be longer.
                Path socketDirectory = Files.createTempDirectory(shortTemporaryDirectory(), "pgs");
                user.own(socketDirectory);
                int port = tcp ? freePort() : 5432;
                List<String> command =
                        new ArrayList<>(
                                List.of(
                                        binaries.program("postgres").toString(),
                                        "-D",
                                        dataDirectory.toString()));
                Map<String, String> all = new LinkedHashMap<>(settings);
                all.put("port", Integer.toString(port));
                all.put("listen_addresses", tcp ? "127.0.0.1" : "");
                all.put("unix_socket_directories", socketDirectory.toString());
                all.put("logging_collector", "off");
                all.put("log_destination", "stderr");
                all.forEach((name, value) -> command.addAll(List.of("-c", name + "=" + value)));
                long logStart = Files.exists(log) ? Files.size(log) : 0;
                Process process =
                        Processes.builder(user.command(command))
                                .redirectErrorStream(true)
                                .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()))
                                .start();
                process.getOutputStream().close();
                // Ends by itself at a line on its input; at end of input (this JVM died) it stops
                // the server first.
                Process watchdog =
                        Processes.builder(
                                        List.of(
                                                "sh",
                                                "-c",
                                                "read line || { kill -s QUIT "
                                                        + process.pid()
                                                        + "; rm -rf '"
                                                        + socketDirectory
                                                        + "'; }"))
                                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                                .redirectError(ProcessBuilder.Redirect.DISCARD)
                                .start();
                PostgresServer server =
                        new PostgresServer(
                                this, log, logStart, socketDirectory, port, process, watchdog);
                AtExit.SERVERS.add(server);
                return server;
            } catch (IOException e) {
                throw new PostgresServerException(
                        "cannot start PostgreSQL: file=" + dataDirectory, e);
            }
        }
    }

    public PostgresBinaries binaries() {
        return binaries;
    }

    public Path dataDirectory() {
        return dataDirectory;
    }

    /**
     * TCP port on 127.0.0.1; meaningless unless the server was built {@link Builder#connectable()}.
     */
    public int port() {
        return port;
    }

    /** Process id of the postmaster. */
    public long pid() {
        return process.pid();
    }

    public boolean isRunning() {
        return process.isAlive();
    }

    /**
     * Waits until {@code postmaster.pid} says "ready". (PostgreSQL: wait_for_postmaster_start,
     * pg_ctl.c.)
     */
    public void awaitReady() {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(timeoutSeconds);
        while (true) {
            if (!process.isAlive()) {
                throw new PostgresServerException(
                        "PostgreSQL ended with code "
                                + process.exitValue()
                                + " while starting: file="
                                + dataDirectory
                                + "\n"
                                + logTail());
            }
            List<String> lines = pidFile();
            if (lines.size() >= 8
                    && lines.get(0).strip().equals(Long.toString(process.pid()))
                    && lines.get(7).strip().equals("ready")) {
                return;
            }
            if (System.nanoTime() - deadline > 0) {
                throw new PostgresServerException(
                        "PostgreSQL is not ready after "
                                + timeoutSeconds
                                + " s: file="
                                + dataDirectory
                                + "\n"
                                + logTail());
            }
            pause();
        }
    }

    /** A connection as the superuser, autocommit on, no automatic savepoints. */
    public Connection connect(String database) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", "postgres");
        properties.setProperty("sslmode", "disable");
        properties.setProperty("gssEncMode", "disable");
        properties.setProperty("autosave", "never");
        properties.setProperty("connectTimeout", "30");
        properties.setProperty("socketTimeout", "600");
        Connection connection =
                new org.postgresql.Driver()
                        .connect(
                                "jdbc:postgresql://127.0.0.1:" + port + "/" + database, properties);
        if (connection == null) {
            throw new SQLException("the driver does not accept its own URL");
        }
        return connection;
    }

    /**
     * Stops the server and waits for its end.
     *
     * @throws PostgresServerException when it does not end in time (it is killed then), or not
     *     cleanly
     */
    public void stop(StopMode mode) {
        if (process.isAlive()) {
            signal(mode.signal, process.pid());
        }
        boolean ended = waitForEnd(process, timeoutSeconds);
        if (!ended) {
            killQuietly();
            throw new PostgresServerException(
                    "PostgreSQL did not stop within "
                            + timeoutSeconds
                            + " s: file="
                            + dataDirectory
                            + "\n"
                            + logTail());
        }
        finish();
        if (mode == StopMode.FAST && process.exitValue() != 0) {
            throw new PostgresServerException(
                    "PostgreSQL ended with code "
                            + process.exitValue()
                            + ": file="
                            + dataDirectory
                            + "\n"
                            + logTail());
        }
    }

    /**
     * Kills every process of the server with SIGKILL and waits until all are gone: what is on disk
     * then is what a crash of the server leaves. The postmaster is held still first, so that it
     * cannot react to the death of a child.
     */
    public void kill() {
        List<String> pidFile = pidFile();
        if (process.isAlive()) {
            signal("STOP", process.pid());
        }
        List<ProcessHandle> children = process.descendants().toList();
        children.forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
        boolean gone = waitForEnd(process, timeoutSeconds);
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(timeoutSeconds);
        for (ProcessHandle child : children) {
            while (gone && isReallyAlive(child)) {
                gone = System.nanoTime() - deadline < 0;
                pause();
            }
        }
        releaseSharedMemory(pidFile);
        finish();
        if (!gone) {
            throw new PostgresServerException(
                    "PostgreSQL processes are alive after SIGKILL: file=" + dataDirectory);
        }
    }

    /** Stops the server at once if it is still running; writes no checkpoint. */
    @Override
    public void close() {
        if (process.isAlive()) {
            stop(StopMode.IMMEDIATE);
        } else {
            finish();
        }
    }

    /** The log file: beside the data directory, appended to by every start. */
    public Path log() {
        return log;
    }

    /** What this server logged since it was started. */
    public String logSinceStart() {
        try {
            byte[] all = Files.readAllBytes(log);
            return new String(
                    all, (int) logStart, all.length - (int) logStart, StandardCharsets.UTF_8);
        } catch (IOException e) {
            return "(no log: " + e + ")";
        }
    }

    /** The last 40 lines of {@link #logSinceStart()}. */
    public String logTail() {
        List<String> lines = logSinceStart().lines().toList();
        return String.join("\n", lines.subList(Math.max(0, lines.size() - 40), lines.size()));
    }

    @Override
    public String toString() {
        return "PostgreSQL " + binaries.version() + " over " + dataDirectory;
    }

    void killQuietly() {
        try {
            kill();
        } catch (RuntimeException e) {
            process.destroyForcibly();
        }
    }

    private void finish() {
        try (var out = watchdog.getOutputStream()) {
            out.write('\n');
        } catch (IOException e) {
            // It has ended already.
        }
        if (!waitForEnd(watchdog, 5)) {
            watchdog.destroyForcibly();
        }
        FileTrees.delete(socketDirectory);
        // Listed until nothing of it is left: the JVM may be about to end.
        AtExit.SERVERS.remove(this);
    }

    private List<String> pidFile() {
        try {
            return Files.readAllLines(dataDirectory.resolve("postmaster.pid"));
        } catch (NoSuchFileException e) {
            return List.of();
        } catch (IOException e) {
            throw new PostgresServerException(
                    "cannot read the lock file: file=" + dataDirectory.resolve("postmaster.pid"),
                    e);
        }
    }

    /**
     * A killed server leaves its small System V segment behind; line 7 of the lock file holds its
     * key and id.
     */
    private static void releaseSharedMemory(List<String> pidFile) {
        if (pidFile.size() >= 7) {
            String[] keyAndId = pidFile.get(6).strip().split("\\s+");
            if (keyAndId.length == 2 && keyAndId[1].matches("\\d+")) {
                try {
                    Processes.run(List.of("ipcrm", "-m", keyAndId[1]), 10);
                } catch (PostgresServerException e) {
                    // No such program: a few bytes stay until the next boot.
                }
            }
        }
    }

    /** False also for a zombie whose parent has not collected it. */
    private static boolean isReallyAlive(ProcessHandle handle) {
        if (!handle.isAlive()) {
            return false;
        }
        try {
            String stat = Files.readString(Path.of("/proc/" + handle.pid() + "/stat"));
            return !stat.substring(stat.lastIndexOf(')') + 1).strip().startsWith("Z");
        } catch (IOException e) {
            return false;
        }
    }

    private static void signal(String name, long pid) {
        Processes.run(List.of("sh", "-c", "kill -s " + name + " " + pid), 10);
    }

    private static boolean waitForEnd(Process process, int seconds) {
        boolean interrupted = false;
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        try {
            while (true) {
                try {
                    return process.waitFor(
                            Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static void pause() {
        try {
            Thread.sleep(5);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new PostgresServerException("interrupted while waiting for PostgreSQL", e);
        }
    }

    private static Path shortTemporaryDirectory() {
        Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
        return temporary.toString().length() <= 70 ? temporary : Path.of("/tmp");
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
