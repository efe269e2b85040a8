package org.pgkernel.cli;

import java.io.PrintWriter;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.cli.repro.ReproCommand;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/**
 * The {@code pgkernel} command. Exit codes: 0 done, 1 the work failed or was refused, 2 the command
 * line is wrong.
 */
@Command(
        name = "pgkernel",
        mixinStandardHelpOptions = true,
        version = "pgkernel 0.1.0 (on-disk formats of PostgreSQL 15)",
        description =
                "A PostgreSQL-shaped storage kernel: recovers clusters, reproduces published experiments.",
        subcommands = {ReproCommand.class, RecoverCommand.class, CommandLine.HelpCommand.class})
public final class Main implements Runnable {
    @CommandLine.Spec private CommandLine.Model.CommandSpec spec;

    /** Runs the command and ends the process with its exit code. */
    public static void main(String[] arguments) {
        System.exit(run(arguments));
    }

    /** The same inside a process that goes on. @return the exit code */
    public static int run(String... arguments) {
        return commandLine().execute(arguments);
    }

    static CommandLine commandLine() {
        CommandLine line = new CommandLine(new Main());
        line.setCaseInsensitiveEnumValuesAllowed(true);
        line.setExecutionExceptionHandler(Main::report);
        return line;
    }

    /**
     * One sentence for what the world did wrong; a stack trace only for our own bugs, and only when
     * asked for.
     */
    private static int report(
            Exception failure, CommandLine command, CommandLine.ParseResult parsed) {
        PrintWriter err = command.getErr();
        Throwable shown = failure;
        if (failure instanceof KernelException || failure instanceof UserException) {
            err.println("pgkernel: " + failure.getMessage());
        } else {
            err.println("pgkernel: internal error: " + failure + " (PGKERNEL_TRACE=1 shows where)");
        }
        if (System.getenv("PGKERNEL_TRACE") != null) {
            shown.printStackTrace(err);
        }
        err.flush();
        return 1;
    }

    @Override
    public void run() {
        throw new CommandLine.ParameterException(
                spec.commandLine(), "which command? (try pgkernel help)");
    }
}
