package org.pgkernel.cli;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.pgkernel.base.Lsn;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.testkit.ClusterCopy;
import picocli.CommandLine;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code pgkernel recover}: crash recovery of a PostgreSQL 15 data directory. */
@Command(
        name = "recover",
        mixinStandardHelpOptions = true,
        description = {
            "Recovers a crashed PostgreSQL 15 cluster from the WAL in its own pg_wal and shuts it down cleanly, so that PostgreSQL starts with nothing left to "
                    + "recover. Refuses, before writing anything, what it cannot recover wholly."
        })
final class RecoverCommand implements Callable<Integer> {
    @CommandLine.Spec private CommandLine.Model.CommandSpec spec;

    @Parameters(paramLabel = "DIR", description = "The data directory; no server may be using it.")
    private Path directory;

    @ArgGroup(exclusive = true, multiplicity = "1")
    private Where where;

    private static final class Where {
        @Option(
                names = "--to",
                paramLabel = "DIR2",
                description = "Recover a copy there; DIR stays as it is. DIR2 must not exist.")
        private Path to;

        @Option(names = "--in-place", description = "Recover DIR itself.")
        private boolean inPlace;
    }

    @Option(
            names = "--shared-buffers",
            paramLabel = "SIZE",
            defaultValue = "1GB",
            description = "Pool size (default: ${DEFAULT-VALUE}).")
    private String sharedBuffers;

    @Option(
            names = "--strategy",
            paramLabel = "NAME",
            defaultValue = "lookup",
            description = "Drop strategy: ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
    private DropStrategy strategy;

    @Override
    public Integer call() {
        ClusterOptions options;
        try {
            options =
                    ClusterOptions.defaults()
                            .withSharedBuffers(SharedBuffers.parse(sharedBuffers).buffers())
                            .withDropStrategy(strategy);
        } catch (IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), e.getMessage());
        }
        if (!Files.isDirectory(directory)) {
            throw new UserException("not a directory: file=" + directory);
        }
        Path target = directory;
        if (where.to != null) {
            if (Files.exists(where.to)) {
                throw new UserException(
                        "--to names something that exists already: file=" + where.to);
            }
            Cluster.check(directory, options);
            ClusterCopy.copy(directory, where.to);
            target = where.to;
        }
        try (Cluster cluster = Cluster.openForCrashRecovery(target, options)) {
            Cluster.Report report = cluster.report();
            System.out.printf(
                    Locale.ROOT,
                    "recovered %s: %,d records, %s to %s, redo %.2f s%n",
                    target,
                    report.records(),
                    Lsn.format(report.redoFrom()),
                    Lsn.format(report.redoTo()),
                    report.redoNanos() / 1e9);
        }
        return 0;
    }
}
