package org.pgkernel.testkit;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Runs short-lived programs, with a time limit. */
final class Processes {
    /**
     * @param output standard output and standard error together
     */
    record Outcome(int exitCode, String output) {}

    private Processes() {}

    /**
     * Runs a program to its end. @throws PostgresServerException when it cannot start, or does not
     * end in time (it is killed then)
     */
    static Outcome run(List<String> command, int timeoutSeconds) {
        Path output = null;
        Process process = null;
        try {
            // A file, not a pipe: a program that leaves a daemon behind would keep a pipe open for
            // ever.
            output = Files.createTempFile("pgkernel", ".out");
            process =
                    builder(command)
                            .redirectErrorStream(true)
                            .redirectOutput(output.toFile())
                            .start();
            AtExit.PROGRAMS.put(process, output);
            process.getOutputStream().close();
            if (!process.waitFor(timeoutSeconds, TimeUnit.SECONDS)) {
                throw new PostgresServerException(
                        "no end after " + timeoutSeconds + " s: " + String.join(" ", command));
            }
            return new Outcome(
                    process.exitValue(),
                    new String(Files.readAllBytes(output), StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new PostgresServerException("cannot run " + String.join(" ", command), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new PostgresServerException(
                    "interrupted while running " + String.join(" ", command), e);
        } finally {
            if (process != null && process.isAlive()) {
                process.destroyForcibly();
            }
            if (output != null) {
                output.toFile().delete();
            }
            if (process != null) {
                AtExit.PROGRAMS.remove(process);
            }
        }
    }

    /** Runs a program that must succeed. */
    static String runChecked(List<String> command, int timeoutSeconds) {
        Outcome outcome = run(command, timeoutSeconds);
        if (outcome.exitCode() != 0) {
            throw new PostgresServerException(
                    "exit code "
                            + outcome.exitCode()
                            + " of "
                            + String.join(" ", command)
                            + "\n"
                            + outcome.output());
        }
        return outcome.output();
    }

    /**
     * A builder with a plain environment: no PG* variables of the caller, messages in English, UTC.
     */
    static ProcessBuilder builder(List<String> command) {
        ProcessBuilder builder = new ProcessBuilder(command).directory(Path.of("/").toFile());
        builder.environment()
                .keySet()
                .removeIf(
                        name ->
                                name.startsWith("PG")
                                        || name.startsWith("LC_")
                                        || name.equals("LANG")
                                        || name.equals("LANGUAGE"));
        builder.environment().put("LC_ALL", "C");
        builder.environment().put("TZ", "UTC");
        return builder;
    }
}
