package org.pgkernel.cli.bench;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.pgkernel.cli.Progress;
import org.pgkernel.cli.UserException;
import org.pgkernel.testkit.WorkDirectory;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code pgkernel bench fsm}: the policies for free space side by side. */
@Command(
        name = "fsm",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Compares the policies for free space: the published pgbench and COPY runs at scales that fit, many small tables, and the map's own operations. "
                    + "Runs are in turns; the ratio is the median of those of one round, with its 95 % interval. For a PostgreSQL it is ALWAYS / PostgreSQL, for a policy policy / ALWAYS.",
            "Data are in memory (tmpfs)."
        })
public final class FsmCommand implements Callable<Integer> {
    @CommandLine.Spec private CommandLine.Model.CommandSpec spec;

    @Option(
            names = "--part",
            paramLabel = "LIST",
            split = ",",
            description = "tpcb, copy, tables, search (default: all).")
    private List<String> parts;

    @Option(
            names = "--quick",
            description =
                    "What is not given otherwise is small: 3 rounds, scale 1, 1 and 16 sessions, 0.5 s a run, 200000 rows, PostgreSQL 15, 500 tables.")
    private boolean quick;

    @Option(
            names = "--rounds",
            paramLabel = "N",
            description = "Runs of each case and policy, not of tables (default: 10).")
    private Integer rounds;

    @Option(
            names = "--scale",
            paramLabel = "LIST",
            split = ",",
            description = "pgbench's scales (default: 10,50).")
    private List<Integer> scales;

    @Option(
            names = "--sessions",
            paramLabel = "LIST",
            split = ",",
            description = "Sessions at a time (default: 1,16,32,64).")
    private List<Integer> sessions;

    @Option(names = "--seconds", paramLabel = "S", description = "Of each TPC-B run (default: 5).")
    private Double seconds;

    @Option(
            names = "--rows",
            paramLabel = "LIST",
            split = ",",
            description = "Rows of the CSV files (default: 1000000,5000000).")
    private List<Integer> rows;

    @Option(
            names = "--postgres",
            paramLabel = "LIST",
            split = ",",
            description = "Releases that copy, too, or none (default: 15,18).")
    private List<String> postgres;

    @Option(names = "--tables", paramLabel = "N", description = "Small tables (default: 10000).")
    private Integer tables;

    @Option(
            names = "--directory",
            paramLabel = "DIR",
            description = "Where data are while it runs (default: ${DEFAULT-VALUE}).",
            defaultValue = "/dev/shm")
    private Path directory;

    @Option(
            names = "--csv",
            paramLabel = "FILE",
            description = "Write the figures there, a line a round, policy and measure.")
    private Path csv;

    @Option(
            names = "--append",
            description =
                    "Go on where the file of --csv ends: the tables show all of its rounds. Long measurements can so be made in pieces.")
    private boolean append;

    @Override
    public Integer call() throws IOException, InterruptedException {
        FsmSettings settings;
        try {
            settings = settings();
        } catch (IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), e.getMessage());
        }
        List<FsmVariant> variants = FsmVariant.all();
        FsmFigures figures = new FsmFigures();
        checkCsv();
        if (append && Files.exists(csv)) {
            figures.read(csv);
        }
        if (settings.parts().contains(FsmPart.COPY)) {
            FsmCopy.binaries(settings.postgres());
        }
        checkRoom(settings.bytes(variants.size()));
        PrintWriter out = spec.commandLine().getOut();
        out.print(plan(settings, variants));
        out.flush();
        long began = System.nanoTime();
        try (WorkDirectory scratch = WorkDirectory.createIn(directory, "pgkernel-fsm-")) {
            for (FsmPart part : settings.parts()) {
                run(part, settings, variants, figures, scratch.path());
                if (csv != null) {
                    figures.write(csv);
                }
            }
        }
        out.println();
        out.print(figures.render());
        out.println();
        out.println("elapsed: " + Progress.elapsed(began));
        out.flush();
        return 0;
    }

    private static void run(
            FsmPart part,
            FsmSettings settings,
            List<FsmVariant> variants,
            FsmFigures figures,
            Path scratch)
            throws IOException, InterruptedException {
        Path place = scratch.resolve(part.name().toLowerCase(Locale.ROOT));
        switch (part) {
            case TPCB -> new FsmTpcb(settings, variants, figures).run(place);
            case COPY -> new FsmCopy(settings, variants, figures).run(place);
            case TABLES -> new FsmTables(settings, variants, figures).run(place);
            case SEARCH -> new FsmSearch(settings, figures).run(place);
        }
    }

    private static String plan(FsmSettings settings, List<FsmVariant> variants) {
        StringBuilder text = new StringBuilder("policies: ");
        text.append(variants.stream().map(FsmVariant::name).collect(Collectors.joining(", ")));
        text.append('\n');
        for (FsmPart part : settings.parts()) {
            text.append(part.name().toLowerCase(Locale.ROOT))
                    .append(": ")
                    .append(part.title())
                    .append(
                            switch (part) {
                                case TPCB ->
                                        String.format(
                                                Locale.ROOT,
                                                "; scales %s, sessions %s, %.1f s a run, %d rounds",
                                                settings.scales(),
                                                settings.sessions(),
                                                settings.seconds(),
                                                settings.rounds());
                                case COPY ->
                                        "; rows "
                                                + settings.rows()
                                                + ", PostgreSQL "
                                                + settings.postgres()
                                                + ", "
                                                + settings.rounds()
                                                + " rounds";
                                case TABLES -> "; " + settings.tables() + " tables";
                                case SEARCH -> "; " + settings.rounds() + " rounds";
                            })
                    .append('\n');
        }
        return text.append("expected: about ")
                .append(settings.expectedSeconds(variants.size()))
                .append(" s\n")
                .toString();
    }

    private void checkRoom(long needed) throws IOException {
        if (!Files.isDirectory(directory) || !Files.isWritable(directory)) {
            throw new UserException("data cannot be put there: directory=" + directory);
        }
        long room = Files.getFileStore(directory).getUsableSpace();
        if (room < needed) {
            throw new UserException(
                    String.format(
                            Locale.ROOT,
                            "the data take about %.1f GB and %s has %.1f GB: name another place with --directory, or take less",
                            needed / 1e9,
                            directory,
                            room / 1e9));
        }
    }

    private void checkCsv() {
        if (csv == null) {
            if (append) {
                throw new CommandLine.ParameterException(
                        spec.commandLine(), "--append needs the file of --csv");
            }
            return;
        }
        Path parent = csv.toAbsolutePath().getParent();
        if (Files.isDirectory(csv)
                || !Files.isDirectory(parent)
                || !Files.isWritable(Files.exists(csv) ? csv : parent)) {
            throw new UserException("the figures cannot be written there: file=" + csv);
        }
    }

    private FsmSettings settings() {
        List<FsmPart> wanted =
                parts == null
                        ? List.of(FsmPart.values())
                        : parts.stream().map(FsmCommand::part).distinct().toList();
        List<String> releases =
                postgres != null ? postgres : quick ? List.of("15") : List.of("15", "18");
        return new FsmSettings(
                wanted,
                between("--rounds", or(rounds, 3, 10), 1, 1000),
                between("--scale", or(scales, List.of(1), List.of(10, 50)), 1, 2000),
                between(
                        "--sessions",
                        or(sessions, List.of(1, 16), List.of(1, 16, 32, 64)),
                        1,
                        TpcbCluster.MOST_CLIENTS),
                seconds(),
                between(
                        "--rows",
                        or(rows, List.of(200_000), List.of(1_000_000, 5_000_000)),
                        1,
                        50_000_000),
                releases.equals(List.of("none"))
                        ? List.of()
                        : releases.stream().map(FsmCommand::major).distinct().toList(),
                between("--tables", or(tables, 500, 10_000), 4, 100_000));
    }

    private double seconds() {
        double value = or(seconds, 0.5, 5.0);
        if (!(value >= 0.01 && value <= 3600)) {
            throw new IllegalArgumentException(
                    "--seconds must be between 0.01 and 3600, not " + value);
        }
        return value;
    }

    private <T> T or(T given, T small, T usual) {
        return given != null ? given : quick ? small : usual;
    }

    private static FsmPart part(String name) {
        for (FsmPart part : FsmPart.values()) {
            if (part.name().toLowerCase(Locale.ROOT).equals(name)) {
                return part;
            }
        }
        throw new IllegalArgumentException(
                "--part knows tpcb, copy, tables and search, not \"" + name + "\"");
    }

    private static int major(String text) {
        if (!text.matches("1[0-9]")) {
            throw new IllegalArgumentException(
                    "--postgres takes major versions, or none, not \"" + text + "\"");
        }
        return Integer.parseInt(text);
    }

    private static List<Integer> between(String option, List<Integer> values, int least, int most) {
        values.forEach(value -> between(option, value, least, most));
        return values.stream().distinct().toList();
    }

    private static int between(String option, int value, int least, int most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(
                    option + " must be between " + least + " and " + most + ", not " + value);
        }
        return value;
    }
}
