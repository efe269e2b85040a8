package org.pgkernel.cli.bench;

import picocli.CommandLine;
import picocli.CommandLine.Command;

/** {@code pgkernel bench}: one subcommand a benchmark. */
@Command(
        name = "bench",
        mixinStandardHelpOptions = true,
        description = "Measures a part of the kernel; needs no data.",
        subcommands = {ReplacementCommand.class, FsmCommand.class})
public final class BenchCommand implements Runnable {
    @CommandLine.Spec private CommandLine.Model.CommandSpec spec;

    @Override
    public void run() {
        throw new CommandLine.ParameterException(
                spec.commandLine(),
                "which benchmark, " + String.join(" or ", spec.subcommands().keySet()) + "?");
    }
}
