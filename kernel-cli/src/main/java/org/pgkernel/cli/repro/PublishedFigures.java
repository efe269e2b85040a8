package org.pgkernel.cli.repro;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * The failover figures of the thread "Optimize dropping of relation buffers using dlist"
 * (pgsql-hackers, 2020-12): 10,000 tables of 1,000 rows, mean of 15 runs, 40 cores, 64 GB. Seconds.
 */
final class PublishedFigures {
    /** {@code master} scans the pool, {@code patched} looks blocks up. */
    record Figure(double master, double patched) {}

    static final int TABLES = 10_000;

    private final Map<String, Figure> figures = new HashMap<>();

    PublishedFigures() {
        try (BufferedReader in =
                new BufferedReader(
                        new InputStreamReader(
                                PublishedFigures.class.getResourceAsStream("drop-many-tables.csv"),
                                StandardCharsets.UTF_8))) {
            in.lines()
                    .skip(1)
                    .map(line -> line.split(","))
                    .filter(field -> field[1].equals("failover"))
                    .forEach(
                            field ->
                                    figures.put(
                                            field[0] + " " + field[2],
                                            new Figure(
                                                    Double.parseDouble(field[3]),
                                                    Double.parseDouble(field[4]))));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The figure for this operation and pool size, or null when none was published. */
    Figure find(Operation operation, String sharedBuffers) {
        return figures.get(operation.name() + " " + sharedBuffers);
    }
}
