package org.pgkernel.benchmarks;

import java.io.IOException;
import java.io.PrintStream;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;

/**
 * What throwing away a table of 100 pages costs on a primary: a real PostgreSQL's TRUNCATE at 20 GB
 * less the same at 128 MB, which leaves what the pool's size costs; and our drop call over a full
 * pool of 20 GB outside recovery. All run in turns in one process's sight, so that they share what
 * else the machine does.
 *
 * <p>Our side is the drop call alone, PostgreSQL's a difference of statements: catalog work, WAL
 * and files cancel out there.
 */
public final class PrimaryDropReport {
    private static final int PAGES = 100;
    private static final int OUR_BUFFERS = (int) (20L << 30 >> 13);
    private static final int RESAMPLES = 2000;

    private PrimaryDropReport() {}

    /** Two servers of one release and what their statements took, nanoseconds. */
    private static final class Rival {
        final String name;
        final Table small;
        final Table large;
        final List<Long> smallNanos = new ArrayList<>();
        final List<Long> largeNanos = new ArrayList<>();

        Rival(PostgresBinaries binaries, Scratch scratch) throws SQLException {
            name = "PostgreSQL " + binaries.version();
            small = new Table(binaries, scratch, "128MB");
            large = new Table(binaries, scratch, "20GB");
        }
    }

    /** A server with a table of 100 pages in it. */
    private static final class Table {
        private final PostgresServer server;
        private final Connection connection;
        private final Statement statement;

        Table(PostgresBinaries binaries, Scratch scratch, String sharedBuffers)
                throws SQLException {
            java.nio.file.Path data = scratch.resolve(binaries.major() + "-" + sharedBuffers);
            PostgresServer.initdb(binaries, data, false);
            server =
                    PostgresServer.builder(binaries, data)
                            .settings(PostgresServer.quietSettings())
                            .settings(
                                    Map.of(
                                            "shared_buffers",
                                            sharedBuffers,
                                            "huge_pages",
                                            "off",
                                            "full_page_writes",
                                            "off",
                                            "checkpoint_timeout",
                                            "30min",
                                            "max_wal_size",
                                            "10GB"))
                            .connectable()
                            .start();
            connection = server.connect("postgres");
            statement = connection.createStatement();
            // Columns of fixed length and no TOAST table: twelve rows a page.
            StringBuilder columns = new StringBuilder("CREATE TABLE t (id int");
            for (int i = 0; i < 10; i++) {
                columns.append(", c").append(i).append(" name");
            }
            statement.execute(columns + ")");
        }

        /**
         * @return nanoseconds of the TRUNCATE
         */
        long fillAndTruncate() throws SQLException {
            statement.execute(
                    "INSERT INTO t SELECT g, 'a','a','a','a','a','a','a','a','a','a'"
                            + " FROM generate_series(1, "
                            + 12 * PAGES
                            + ") g");
            try (ResultSet row = statement.executeQuery("SELECT pg_relation_size('t') / 8192")) {
                row.next();
                if (row.getInt(1) != PAGES) {
                    throw new IllegalStateException("the table has " + row.getInt(1) + " pages");
                }
            }
            long began = System.nanoTime();
            statement.execute("TRUNCATE t");
            return System.nanoTime() - began;
        }

        void stop() throws SQLException {
            connection.close();
            server.stop(PostgresServer.StopMode.FAST);
            server.close();
        }
    }

    public static void main(String[] args) throws Exception {
        int repetitions = args.length > 0 ? Integer.parseInt(args[0]) : 60;
        Locale.setDefault(Locale.ROOT);
        List<PostgresBinaries> releases = new ArrayList<>();
        for (int major : new int[] {15, 18}) {
            PostgresBinaries.ofMajor(major).ifPresent(releases::add);
        }
        try (Scratch scratch = new Scratch()) {
            FilledPool filled =
                    FilledPool.of(OUR_BUFFERS, DropStrategy.ADAPTIVE, /* inRecovery */ false);
            List<Rival> rivals = new ArrayList<>();
            for (PostgresBinaries binaries : releases) {
                rivals.add(new Rival(binaries, scratch));
            }
            List<Long> known = new ArrayList<>();
            List<Long> unknown = new ArrayList<>();
            for (int i = -5; i < repetitions; i++) {
                for (Rival rival : rivals) {
                    add(rival.smallNanos, i, rival.small.fillAndTruncate());
                    add(rival.largeNanos, i, rival.large.fillAndTruncate());
                }
                add(known, i, drop(filled, true));
                add(unknown, i, drop(filled, false));
            }
            for (Rival rival : rivals) {
                rival.small.stop();
                rival.large.stop();
            }
            print(System.out, repetitions, rivals, known, unknown);
        }
    }

    /** The first few are warm-up. */
    private static void add(List<Long> nanos, int repetition, long value) {
        if (repetition >= 0) {
            nanos.add(value);
        }
    }

    /** Drops a relation of 100 pages, all resident, out of our pool. */
    private static long drop(FilledPool filled, boolean sizesKnown) throws IOException {
        SmgrRelation[] victim = {filled.victim(PAGES)};
        FilledPool.Guests guests = filled.new Guests(PAGES);
        for (int block = 0; block < PAGES; block++) {
            filled.map(victim[0], block);
        }
        if (!sizesKnown) {
            victim[0].forgetSizes();
        }
        long began = System.nanoTime();
        filled.pool.dropRelations(victim, 1);
        long nanos = System.nanoTime() - began;
        for (int block = 0; block < PAGES; block++) {
            if (filled.holds(victim[0], block)) {
                throw new IllegalStateException("the drop left block " + block);
            }
        }
        guests.comeBack();
        filled.remove(victim[0]);
        return nanos;
    }

    private static void print(
            PrintStream out,
            int repetitions,
            List<Rival> rivals,
            List<Long> known,
            List<Long> unknown) {
        out.printf(
                "One table of %d pages, %d times in turns; medians, ms (middle half)%n%n",
                PAGES, repetitions);
        out.println("| what | ms |");
        out.println("|---|---:|");
        for (Rival rival : rivals) {
            out.printf("| %s TRUNCATE at 128MB | %s |%n", rival.name, cell(rival.smallNanos));
            out.printf("| %s TRUNCATE at 20GB | %s |%n", rival.name, cell(rival.largeNanos));
            out.printf(
                    "| %s pool part | %.2f |%n",
                    rival.name, (median(rival.largeNanos) - median(rival.smallNanos)) / 1e6);
        }
        out.printf("| pgkernel drop call at 20GB, sizes known | %s |%n", cell(known));
        out.printf("| pgkernel drop call at 20GB, sizes unknown | %s |%n%n", cell(unknown));
        out.println("| PostgreSQL's pool part over our drop call | ratio | 95 % interval |");
        out.println("|---|---:|---:|");
        for (Rival rival : rivals) {
            ratio(out, rival, "sizes known", known);
            ratio(out, rival, "sizes unknown", unknown);
        }
    }

    private static void ratio(PrintStream out, Rival rival, String sizes, List<Long> ours) {
        SplittableRandom random = new SplittableRandom(1);
        double[] ratios = new double[RESAMPLES];
        for (int i = 0; i < RESAMPLES; i++) {
            ratios[i] =
                    (median(resample(rival.largeNanos, random))
                                    - median(resample(rival.smallNanos, random)))
                            / median(resample(ours, random));
        }
        Arrays.sort(ratios);
        double all = (median(rival.largeNanos) - median(rival.smallNanos)) / median(ours);
        out.printf(
                "| %s, %s | %.0f | %.0f to %.0f |%n",
                rival.name,
                sizes,
                all,
                ratios[(int) (RESAMPLES * 0.025)],
                ratios[(int) (RESAMPLES * 0.975)]);
    }

    private static List<Long> resample(List<Long> values, SplittableRandom random) {
        List<Long> sample = new ArrayList<>(values.size());
        for (int i = 0; i < values.size(); i++) {
            sample.add(values.get(random.nextInt(values.size())));
        }
        return sample;
    }

    private static String cell(List<Long> nanos) {
        return String.format(
                "%.4f (%.4f to %.4f)",
                median(nanos) / 1e6, quantile(nanos, 0.25) / 1e6, quantile(nanos, 0.75) / 1e6);
    }

    private static double median(List<Long> values) {
        return quantile(values, 0.5);
    }

    private static double quantile(List<Long> values, double q) {
        long[] sorted = values.stream().mapToLong(Long::longValue).sorted().toArray();
        return sorted[(int) Math.min(sorted.length - 1, Math.round(q * (sorted.length - 1)))];
    }
}
