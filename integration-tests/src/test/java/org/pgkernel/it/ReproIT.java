package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
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

    @Test
    void fromACopyTakenAfterTheLoadPagesAreEqualToo() throws IOException {
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
                "no",
                "--base",
                "after-load",
                "--csv",
                csv.toString(),
                "--keep",
                keep.toString()
            };
            assertEquals(0, Main.run(arguments));
            assertEquals(1 + 8, Files.readAllLines(csv).size());
            assertTrue(
                    Files.isDirectory(
                            keep.resolve("truncate-plain").resolve("standby-128MB-LOOKUP-1")),
                    "--keep keeps");
            assertEquals(1, Main.run(arguments), "a directory that is not empty is never used");
        }
    }
}
