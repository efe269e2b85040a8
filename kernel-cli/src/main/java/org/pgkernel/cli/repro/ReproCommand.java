package org.pgkernel.cli.repro;

import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.cli.Progress;
import org.pgkernel.cli.SharedBuffers;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code pgkernel repro}: the published failover experiment. */
@Command(
        name = "repro",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Reproduces the published failover experiment: a real PostgreSQL 15.7 writes WAL that truncates or vacuums many tables; our standby has replayed "
                    + "the load, and the time from resume to promoted is taken for each drop strategy and pool size. PostgreSQL recovers the same data, and "
                    + "every page is compared."
        })
public final class ReproCommand implements Callable<Integer> {
    @CommandLine.Spec private CommandLine.Model.CommandSpec spec;

    @Option(
            names = "--quick",
            description =
                    "200 tables, 128MB, 10GB and 100GB, all strategies, one repetition: what the defaults are. About two minutes.")
    private boolean quick;

    @Option(
            names = "--tables",
            paramLabel = "N",
            description = "Number of tables of 1,000 rows (default: ${DEFAULT-VALUE}).",
            defaultValue = "200")
    private int tables;

    @Option(
            names = "--shared-buffers",
            paramLabel = "LIST",
            split = ",",
            description = "Pool sizes (default: ${DEFAULT-VALUE}).",
            defaultValue = "128MB,10GB,100GB")
    private List<String> sharedBuffers;

    @Option(
            names = "--strategy",
            paramLabel = "LIST",
            split = ",",
            description = "Drop strategies: ${COMPLETION-CANDIDATES} (default: all).")
    private List<DropStrategy> strategies;

    @Option(
            names = "--operation",
            paramLabel = "LIST",
            split = ",",
            description = "${COMPLETION-CANDIDATES} (default: both).")
    private List<Operation> operations;

    @Option(
            names = "--toast",
            paramLabel = "LIST",
            split = ",",
            description =
                    "yes: unbounded varchar, so each table has a TOAST table; no: varchar(20). Default: both for TRUNCATE, no for VACUUM.")
    private List<String> toast;

    @Option(
            names = "--repetitions",
            paramLabel = "N",
            description = "Runs of each cell; the table shows medians (default: ${DEFAULT-VALUE}).",
            defaultValue = "1")
    private int repetitions;

    @Option(
            names = "--base",
            paramLabel = "KIND",
            description =
                    "empty: the standby replays the load; after-load: its copy holds it, so nothing is resident and no size known (default: ${DEFAULT-VALUE}).",
            defaultValue = "empty")
    private String base;

    @Option(
            names = "--postgres",
            paramLabel = "LIST",
            split = ",",
            description = "Real servers to time in the same run: 13, 15.")
    private List<Integer> postgres = List.of();

    @Option(
            names = "--explain",
            description = "Show how the drop calls of each cell were decided, and what that cost.")
    private boolean explain;

    @Option(
            names = "--keep",
            paramLabel = "DIR",
            description = "Keep data and directories there (must not exist or be empty).")
    private Path keep;

    @Option(
            names = "--csv",
            paramLabel = "FILE",
            description = "Write the figures there, one line a run.")
    private Path csv;

    @Override
    public Integer call() {
        Settings settings = settings();
        PrintStream out = System.out;
        out.print(settings.plan());
        long began = System.nanoTime();
        Experiment.Outcome outcome = new Experiment(settings, System.err).run();
        ResultTable table = new ResultTable(settings.tables());
        table.add(outcome.measurements(), outcome.rivals());
        out.println();
        out.print(table.render());
        out.println();
        if (explain) {
            out.print(explanation(outcome.measurements()));
            out.println();
        }
        out.print(verdict(outcome));
        out.println("elapsed: " + Progress.elapsed(began));
        return outcome.pagesDifferent() == 0 ? 0 : 1;
    }

    private Settings settings() {
        try {
            List<SharedBuffers> sizes =
                    sharedBuffers.stream().map(SharedBuffers::parse).distinct().toList();
            require(
                    tables >= 1 && tables <= 100_000,
                    "--tables must be between 1 and 100000, not " + tables);
            require(
                    repetitions >= 1 && repetitions <= 100,
                    "--repetitions must be between 1 and 100, not " + repetitions);
            for (int major : postgres) {
                require(major == 13 || major == 15, "--postgres knows 13 and 15, not " + major);
            }
            return new Settings(
                    tables,
                    sizes,
                    strategies == null
                            ? List.of(DropStrategy.values())
                            : strategies.stream().distinct().toList(),
                    dataKinds(),
                    repetitions,
                    BaseKind.parse(base),
                    postgres.stream().distinct().toList(),
                    keep,
                    csv);
        } catch (IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), e.getMessage());
        }
    }

    private List<Settings.DataKind> dataKinds() {
        List<Settings.DataKind> kinds = new ArrayList<>();
        for (Operation operation :
                operations == null
                        ? List.of(Operation.values())
                        : operations.stream().distinct().toList()) {
            List<String> wanted =
                    toast != null
                            ? toast
                            : operation == Operation.TRUNCATE
                                    ? List.of("no", "yes")
                                    : List.of("no");
            for (String one : wanted.stream().distinct().toList()) {
                require(
                        one.equals("yes") || one.equals("no"),
                        "--toast takes yes and no, not \"" + one + "\"");
                kinds.add(new Settings.DataKind(operation, one.equals("yes")));
            }
        }
        return kinds;
    }

    private static void require(boolean condition, String message) {
        if (!condition) {
            throw new IllegalArgumentException(message);
        }
    }

    /** A paragraph a cell: its drop calls by kind, path, reason and end. */
    static String explanation(List<Measurement> measurements) {
        StringBuilder text = new StringBuilder("drop decisions, resume until promoted\n");
        for (Measurement m : measurements) {
            Cell cell = m.cell();
            text.append(
                    String.format(
                            Locale.ROOT,
                            "%s%s %s %s, repetition %d%n",
                            cell.operation().label(),
                            cell.toast() ? " with TOAST" : " plain",
                            cell.sharedBuffers(),
                            cell.strategy(),
                            m.repetition()));
            m.decisions()
                    .forEach(
                            d ->
                                    text.append(
                                            String.format(
                                                    Locale.ROOT,
                                                    "  %s, %.1f us a call%n",
                                                    d,
                                                    d.nanos() / 1e3 / d.calls())));
        }
        return text.toString();
    }

    private static String verdict(Experiment.Outcome outcome) {
        if (outcome.pagesDifferent() > 0) {
            return "PAGES DIFFER from PostgreSQL's recovery of the same data: "
                    + outcome.pagesDifferent()
                    + "\n";
        }
        return String.format(
                Locale.ROOT,
                "Every page equals PostgreSQL %s's recovery of the same data (%,d pages compared in %d runs).%n",
                outcome.judgeVersion(),
                outcome.measurements().stream().mapToLong(Measurement::pagesCompared).sum(),
                outcome.measurements().size());
    }
}
