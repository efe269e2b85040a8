package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.pgkernel.cli.Main;
import org.pgkernel.testkit.WorkDirectory;

/**
 * The experiment on few tables: every strategy's pages are PostgreSQL's, and the paths are those
 * that PostgreSQL would take.
 */
class ReproIT {
    @Test
    void everyCellIsWrittenToTheCsvWithEqualPages() throws IOException {
        try (WorkDirectory work = WorkDirectory.create("repro")) {
            Path csv = work.resolve("figures.csv");
            assertEquals(
                    0,
                    Main.run(
                            "repro",
                            "--tables",
                            "4",
                            "--shared-buffers",
                            "128MB,256MB",
                            "--csv",
                            csv.toString()));
            List<String> lines = Files.readAllLines(csv);
            // Three data sets, two pools, four strategies.
            assertEquals(1 + 24, lines.size(), String.join("\n", lines));
            for (String line : lines.subList(1, lines.size())) {
                String[] field = line.split(",");
                assertTrue(Double.parseDouble(field[8]) > 0, line);
                assertTrue(Double.parseDouble(field[8]) >= Double.parseDouble(field[9]), line);
                assertTrue(Long.parseLong(field[11]) > 1000, line);
                assertEquals("0", field[12], line);
            }
        }
    }

    /**
     * No size is known when TRUNCATE is replayed: LOOKUP has to scan, ADAPTIVE never does, with
     * TOAST tables or not.
     */
    @Test
    void fromACopyTakenAfterTheLoadPagesAreEqualTooAndAdaptiveNeedsNoSize() throws IOException {
        try (WorkDirectory work = WorkDirectory.create("repro")) {
            Path csv = work.resolve("figures.csv");
            Path keep = work.resolve("kept");
            String[] arguments = {
                "repro",
                "--tables",
                "3",
                "--shared-buffers",
                "128MB",
                "--operation",
                "truncate,vacuum",
                "--toast",
                "no,yes",
                "--base",
                "after-load",
                "--csv",
                csv.toString(),
                "--keep",
                keep.toString()
            };
            String table = printed(() -> assertEquals(0, Main.run(arguments)));
            List<String> lookups = rows(table, "LOOKUP");
            assertEquals(4, lookups.size(), table);
            // Redo of VACUUM reads the pages before it cuts them, and so knows the sizes.
            lookups.stream()
                    .filter(row -> row.contains("TRUNCATE"))
                    .forEach(row -> assertTrue(row.contains("full scan"), row));
            assertEquals(4, rows(table, "ADAPTIVE").size(), table);
            rows(table, "ADAPTIVE").forEach(row -> assertFalse(row.contains("full scan"), row));
            assertEquals(1 + 16, Files.readAllLines(csv).size());
            assertTrue(
                    Files.isDirectory(
                            keep.resolve("truncate-plain").resolve("standby-128MB-LOOKUP-1")),
                    "--keep keeps");
            assertEquals(1, Main.run(arguments), "a directory that is not empty is never used");
        }
    }

    private static List<String> rows(String table, String strategy) {
        return table.lines().filter(line -> line.contains("  " + strategy + "  ")).toList();
    }

    private static String printed(Runnable work) {
        PrintStream before = System.out;
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        System.setOut(new PrintStream(bytes, true, StandardCharsets.UTF_8));
        try {
            work.run();
        } finally {
            System.setOut(before);
        }
        return bytes.toString(StandardCharsets.UTF_8);
    }
}
