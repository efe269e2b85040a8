package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.pgkernel.cli.bench.Bootstrap;
import org.pgkernel.cli.bench.TpcbCluster;
import org.pgkernel.testkit.FileTrees;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;

/**
 * The TPC-B-like workload on our kernel and by pgbench on PostgreSQL 15, in turns, on the same
 * disk, every commit synchronous. pgbench needs an installed PostgreSQL 15; its statements are
 * prepared. There is no SQL on our side: what is compared is everything below it.
 */
public final class TpcbReport {
    private static final int[] CLIENTS = {1, 4, 16};
    private static final int SHARED_BUFFERS_MB = 2048;
    private static final Pattern TPS = Pattern.compile("tps = ([0-9.]+)");

    private TpcbReport() {}

    public static void main(String[] args) throws Exception {
        if (args.length < 1) {
            System.err.println("usage: TpcbReport DIRECTORY-ON-DISK [SCALE [SECONDS [ROUNDS]]]");
            System.exit(2);
        }
        Locale.setDefault(Locale.ROOT);
        int scale = args.length > 1 ? Integer.parseInt(args[1]) : 50;
        int seconds = args.length > 2 ? Integer.parseInt(args[2]) : 10;
        int rounds = args.length > 3 ? Integer.parseInt(args[3]) : 5;
        PostgresBinaries binaries =
                PostgresBinaries.installed(15)
                        .orElseThrow(
                                () -> new IllegalStateException("no PostgreSQL 15 is installed"));
        Path scratch = Files.createTempDirectory(Path.of(args[0]), "tpcb-");
        Files.setPosixFilePermissions(scratch, PosixFilePermissions.fromString("rwx--x--x"));
        try (PostgresServer server = server(binaries, scratch.resolve("pg"), scale);
                TpcbCluster ours =
                        new TpcbCluster(
                                scratch.resolve("ours"), scale, SHARED_BUFFERS_MB * (1024 / 8))) {
            double[][] postgres = new double[CLIENTS.length][rounds];
            double[][] kernel = new double[CLIENTS.length][rounds];
            warmUp(server, ours);
            for (int round = 0; round < rounds; round++) {
                for (int c = 0; c < CLIENTS.length; c++) {
                    postgres[c][round] = pgbench(server, CLIENTS[c], seconds);
                    kernel[c][round] = ours.run(CLIENTS[c], seconds, round * 100L + c);
                    System.err.printf(
                            "round %d, %2d clients: PostgreSQL %.0f, pgkernel %.0f tps%n",
                            round + 1, CLIENTS[c], postgres[c][round], kernel[c][round]);
                }
            }
            ours.check();
            print(binaries, scale, seconds, postgres, kernel);
            server.stop(PostgresServer.StopMode.FAST);
        } finally {
            FileTrees.delete(scratch);
        }
    }

    private static PostgresServer server(PostgresBinaries binaries, Path data, int scale)
            throws SQLException, IOException, InterruptedException {
        PostgresServer.initdb(binaries, data, false);
        PostgresServer server =
                PostgresServer.builder(binaries, data)
                        .settings(PostgresServer.quietSettings())
                        .settings(
                                Map.of(
                                        "fsync", "on",
                                        "synchronous_commit", "on",
                                        "shared_buffers", SHARED_BUFFERS_MB + "MB",
                                        "bgwriter_delay", "200ms",
                                        "max_connections", "40",
                                        "checkpoint_timeout", "30min",
                                        "max_wal_size", "10GB",
                                        "min_wal_size", "1GB"))
                        .connectable()
                        .start();
        run(server, "-i", "-q", "-s", Integer.toString(scale));
        checkpoint(server);
        return server;
    }

    private static void checkpoint(PostgresServer server) throws SQLException {
        try (Connection connection = server.connect("postgres");
                Statement statement = connection.createStatement()) {
            statement.execute("CHECKPOINT");
        }
    }

    private static void warmUp(PostgresServer server, TpcbCluster ours) throws Exception {
        pgbench(server, 4, 3);
        ours.run(4, 5, 7);
    }

    private static double pgbench(PostgresServer server, int clients, int seconds)
            throws IOException, InterruptedException {
        String output =
                run(
                        server,
                        "-n",
                        "-M",
                        "prepared",
                        "-c",
                        Integer.toString(clients),
                        "-j",
                        Integer.toString(Math.min(clients, 2)),
                        "-T",
                        Integer.toString(seconds));
        Matcher tps = TPS.matcher(output);
        if (!tps.find()) {
            throw new IllegalStateException("pgbench told no tps: " + output);
        }
        return Double.parseDouble(tps.group(1));
    }

    private static String run(PostgresServer server, String... arguments)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        command.add(server.binaries().program("pgbench").toString());
        command.addAll(
                List.of(
                        "-h",
                        "localhost",
                        "-p",
                        Integer.toString(server.port()),
                        "-U",
                        "postgres"));
        command.addAll(Arrays.asList(arguments));
        command.add("postgres");
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        if (process.waitFor() != 0) {
            throw new IllegalStateException("pgbench failed: " + output);
        }
        return output;
    }

    private static void print(
            PostgresBinaries binaries,
            int scale,
            int seconds,
            double[][] postgres,
            double[][] kernel) {
        System.out.printf(
                "Scale %d, %d s a run, %d rounds in turns; medians (least to most).%n%n",
                scale, seconds, postgres[0].length);
        System.out.printf(
                "| clients | PostgreSQL %s, tps | pgkernel, tps | ratio, median of pairs | 95 %%"
                        + " interval |%n|---:|---:|---:|---:|---:|%n",
                binaries.version());
        for (int c = 0; c < CLIENTS.length; c++) {
            double[] ratios = new double[postgres[c].length];
            for (int i = 0; i < ratios.length; i++) {
                ratios[i] = kernel[c][i] / postgres[c][i];
            }
            double[] interval = Bootstrap.ofMedian(ratios, 2000, 0.95, 42);
            System.out.printf(
                    "| %d | %s | %s | %.2f | %.2f to %.2f |%n",
                    CLIENTS[c],
                    told(postgres[c]),
                    told(kernel[c]),
                    Bootstrap.median(ratios),
                    interval[0],
                    interval[1]);
        }
    }

    private static String told(double[] tps) {
        double[] sorted = tps.clone();
        Arrays.sort(sorted);
        return String.format(
                "%,.0f (%,.0f to %,.0f)",
                Bootstrap.median(tps), sorted[0], sorted[sorted.length - 1]);
    }
}
