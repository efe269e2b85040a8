package org.pgkernel.cli;

import java.io.PrintWriter;
import org.pgkernel.cli.bench.BenchCommand;
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
                "A PostgreSQL-shaped storage kernel: recovers clusters, reproduces published"
                        + " experiments.",
        subcommands = {
            ReproCommand.class,
            RecoverCommand.class,
            BenchCommand.class,
            CommandLine.HelpCommand.class
        })
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

    /** The command as {@link #run} runs it, for who gives it other streams. */
    public static CommandLine commandLine() {
        CommandLine line = new CommandLine(new Main());
        line.setCaseInsensitiveEnumValuesAllowed(true);
        line.setExecutionExceptionHandler(Main::report);
        line.setParameterExceptionHandler(Main::refuse);
        return line;
    }

    /** One sentence for a wrong command line, and where the right ones are described. */
    private static int refuse(CommandLine.ParameterException wrong, String[] arguments) {
        PrintWriter err = wrong.getCommandLine().getErr();
        // Some of the library's messages begin with a word that the prefix says already.
        err.println("pgkernel: " + wrong.getMessage().replaceFirst("^Error: ", ""));
        err.println(
                "("
                        + wrong.getCommandLine().getCommandSpec().qualifiedName()
                        + " --help lists what there is)");
        err.flush();
        return 2;
    }

    /**
     * One sentence for what the world did wrong; a stack trace only for our own bugs, and only when
     * asked for.
     */
    private static int report(
            Exception failure, CommandLine command, CommandLine.ParseResult parsed) {
        PrintWriter err = command.getErr();
        err.println("pgkernel: " + Sentences.of(failure));
        if (System.getenv("PGKERNEL_TRACE") != null) {
            failure.printStackTrace(err);
        }
        err.flush();
        return 1;
    }

    @Override
    public void run() {
        throw new CommandLine.ParameterException(
                spec.commandLine(), "which command, repro, recover or bench?");
    }
}
