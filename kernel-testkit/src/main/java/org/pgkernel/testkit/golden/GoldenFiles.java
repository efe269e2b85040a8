package org.pgkernel.testkit.golden;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * Golden scripts in files {@code NAME.script} of one directory. With the property {@code
 * pgkernel.golden=write} the files are written anew instead of compared.
 */
public final class GoldenFiles {
    /** {@code write}: take what comes out as what is expected. */
    public static final String PROPERTY = "pgkernel.golden";

    private static final String ONE = "pgkernel.golden.script";

    private final Path directory;

    public GoldenFiles(Path directory) {
        this.directory = directory;
    }

    /**
     * Names of all scripts, sorted; with the property {@code pgkernel.golden.script} only that one.
     */
    public List<String> names() {
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(file -> file.getFileName().toString())
                    .filter(name -> name.endsWith(".script"))
                    .map(name -> name.substring(0, name.length() - ".script".length()))
                    .filter(name -> name.equals(System.getProperty(ONE, name)))
                    .sorted()
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * @throws IllegalArgumentException that names file and line, if it is no script
     */
    public GoldenScript read(String name) {
        try {
            return GoldenScript.parse(text(name));
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(file(name) + ", " + e.getMessage(), e);
        }
    }

    public static boolean writing() {
        return "write".equals(System.getProperty(PROPERTY));
    }

    /** {@code all}: no samples where a run of all takes long. */
    public static boolean all() {
        return "all".equals(System.getProperty(PROPERTY));
    }

    /**
     * What a script expects of the kernel: the same as of PostgreSQL, unless a file {@code
     * NAME.kernel} says otherwise, below comments that say why.
     */
    public String expectedOfKernel(String name) {
        Path file = directory.resolve(name + ".kernel");
        try {
            return Files.exists(file)
                    ? Files.readString(file).replaceAll("(?m)^(#.*)?\n", "")
                    : read(name).expected();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Replaces what a script expects. */
    public void write(String name, GoldenOutcomes outcomes) {
        try {
            Files.writeString(
                    file(name), GoldenScript.withExpected(text(name), outcomes.toString()));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private String text(String name) {
        try {
            return Files.readString(file(name));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private Path file(String name) {
        return directory.resolve(name + ".script");
    }
}
