package org.pgkernel.cli.bench;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.cli.Main;
import picocli.CommandLine;

class FsmCommandTest {
    @TempDir Path directory;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int run(String... arguments) {
        CommandLine line = Main.commandLine();
        line.setOut(new PrintWriter(out, true));
        line.setErr(new PrintWriter(err, true));
        String[] all = new String[arguments.length + 4];
        all[0] = "bench";
        all[1] = "fsm";
        all[2] = "--directory";
        all[3] = directory.toString();
        System.arraycopy(arguments, 0, all, 4, arguments.length);
        return line.execute(all);
    }

    @Test
    @DisplayName("every part runs for every policy; a second piece goes on in the same file")
    void pieces() throws IOException {
        Path csv = directory.resolve("figures.csv");
        String[] tiny = {
            "--quick",
            "--rounds",
            "1",
            "--seconds",
            "0.05",
            "--sessions",
            "2",
            "--rows",
            "2000",
            "--postgres",
            "none",
            "--tables",
            "8",
            "--csv",
            csv.toString(),
            "--append"
        };
        assertEquals(0, run(tiny), err.toString());
        assertEquals(0, run(tiny), err.toString());
        List<String> lines = Files.readAllLines(csv);
        assertEquals(FsmFigures.HEAD, lines.getFirst());
        for (FsmVariant variant : FsmVariant.all()) {
            for (String round : List.of("0", "1")) {
                String of = "," + variant.name() + "," + round + ",";
                assertTrue(has(lines, "tpcb,scale 1; 2 sessions,tps" + of), "tpcb " + of);
                assertTrue(has(lines, "copy,2000 rows,ms" + of), "copy " + of);
                assertTrue(has(lines, "tables,8 tables,recovery s" + of), "tables " + of);
            }
        }
        assertTrue(has(lines, "search,10 heap pages; 2 threads,record ns,ALWAYS,1,"));
        assertTrue(out.toString().contains("expected: about "), out.toString());
        try (var left = Files.list(directory)) {
            assertEquals(List.of(csv), left.toList());
        }
    }

    private static boolean has(List<String> lines, String beginning) {
        return lines.stream().anyMatch(line -> line.startsWith(beginning));
    }

    @Test
    @DisplayName("what cannot be done is said in one sentence, before anything is measured")
    void refusals() throws IOException {
        assertEquals(2, run("--part", "nothing"));
        assertTrue(err.toString().contains("not \"nothing\""), err.toString());
        assertNotEquals(0, run("--part", "copy", "--postgres", "11"));
        assertTrue(
                err.toString().contains("there are no binaries of PostgreSQL 11"), err.toString());
        assertNotEquals(0, run("--part", "tables", "--directory", "/no/such/directory"));
        assertNotEquals(0, run("--part", "tpcb", "--scale", "0"));
        assertTrue(err.toString().contains("--scale must be between"), err.toString());
        Path wrong = Files.writeString(directory.resolve("wrong.csv"), "a,b\n");
        assertNotEquals(0, run("--part", "tables", "--csv", wrong.toString(), "--append"));
        assertTrue(err.toString().contains("not a file of figures"), err.toString());
        assertFalse(err.toString().contains("\tat "), err.toString());
    }

    @Test
    @DisplayName("ratios are of one round's pairs; a server's is the policy's to its own")
    void ratios() {
        FsmFigures figures = new FsmFigures();
        for (int round = 0; round < 5; round++) {
            figures.add("copy", "9 rows", "ms", "ALWAYS", round, 100 + round);
            figures.add("copy", "9 rows", "ms", "OTHER", round, 2 * (100 + round));
            figures.add("copy", "9 rows", "ms", "PostgreSQL 15.7", round, 4 * (100 + round));
        }
        String text = figures.render();
        assertTrue(text.contains("| ALWAYS | 102.0 (100.0 to 104.0) | 5 |  |  |"), text);
        assertTrue(
                text.contains("| OTHER | 204.0 (200.0 to 208.0) | 5 | 2.000 | 2.000 to 2.000 |"),
                text);
        assertTrue(text.contains("| 5 | 0.250 | 0.250 to 0.250 |"), text);
    }
}
