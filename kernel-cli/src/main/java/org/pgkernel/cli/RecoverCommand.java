package org.pgkernel.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.FileTrees;
import org.pgkernel.testkit.PostgresServerException;
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
            "Recovers a crashed PostgreSQL 15 cluster from the WAL in its own pg_wal and shuts it"
                    + " down cleanly, so that PostgreSQL starts with nothing left to recover. Refuses,"
                    + " before writing anything, what it cannot recover wholly."
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
                description =
                        "Recover a copy there; DIR stays as it is. DIR2 must not exist, nor"
                                + " DIR2.tblspc, where tablespaces go.")
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
        if (where.to == null) {
            recover(directory, options);
        } else {
            refuseTarget(where.to);
            Cluster.check(directory, options);
            copy(where.to);
            recoverCopy(where.to, options);
        }
        return 0;
    }

    private void refuseTarget(Path target) {
        if (Files.exists(target, LinkOption.NOFOLLOW_LINKS)) {
            throw new UserException("--to names something that exists already: file=" + target);
        }
        Path tablespaces = ClusterCopy.tablespaces(target);
        if (Files.exists(tablespaces, LinkOption.NOFOLLOW_LINKS)) {
            throw new UserException(
                    "the copy's tablespaces would go where something exists already: file="
                            + tablespaces);
        }
        Path parent = target.toAbsolutePath().normalize().getParent();
        try {
            if (parent.toRealPath().startsWith(directory.toRealPath())) {
                throw new UserException("--to lies inside the directory itself: file=" + target);
            }
        } catch (IOException e) {
            throw new UserException("the copy cannot be made there: " + Sentences.of(e), e);
        }
    }

    /** A copy that fails, or is interrupted, is removed: it would be of no use. */
    private void copy(Path target) {
        Thread remover = new Thread(() -> removeCopy(target), "remove the unfinished copy");
        Runtime.getRuntime().addShutdownHook(remover);
        try {
            ClusterCopy.copy(directory, target);
        } catch (PostgresServerException e) {
            removeCopy(target);
            throw e;
        } finally {
            forgetHook(remover);
        }
    }

    private static void removeCopy(Path target) {
        FileTrees.deleteInUse(target);
        FileTrees.deleteInUse(ClusterCopy.tablespaces(target));
    }

    private static void forgetHook(Thread hook) {
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException e) {
            // It is running: the process ends.
        }
    }

    private void recoverCopy(Path target, ClusterOptions options) {
        try {
            recover(target, options);
        } catch (KernelException e) {
            throw new UserException(
                    e.getMessage()
                            + " (the copy, recovered up to there, is left: "
                            + target
                            + "; "
                            + directory
                            + " is as it was)",
                    e);
        }
    }

    private void recover(Path target, ClusterOptions options) {
        FileOwner owner = FileOwner.of(directory);
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
        } catch (RefusedException e) {
            // Nothing was written, so there is nothing to give.
            throw e;
        } catch (KernelException e) {
            owner.give(target);
            throw e;
        }
        owner.give(target);
    }
}
