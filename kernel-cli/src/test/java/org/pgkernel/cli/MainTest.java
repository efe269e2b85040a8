package org.pgkernel.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;

class MainTest {
    private final StringWriter err = new StringWriter();

    private int run(String... arguments) {
        CommandLine line = Main.commandLine();
        line.setErr(new PrintWriter(err, true));
        line.setOut(new PrintWriter(new StringWriter()));
        return line.execute(arguments);
    }

    static Stream<List<String>> wrongCommandLines() {
        return Stream.of(
                List.of(),
                List.of("reproduce"),
                List.of("repro", "--tables", "0"),
                List.of("repro", "--tables", "many"),
                List.of("repro", "--shared-buffers", "10gb"),
                List.of("repro", "--strategy", "fastest"),
                List.of("repro", "--operation", "drop"),
                List.of("repro", "--toast", "perhaps"),
                List.of("repro", "--base", "full"),
                List.of("repro", "--repetitions", "-1"),
                List.of("repro", "--postgres", "9"),
                List.of("bench"),
                List.of("bench", "everything"),
                List.of("bench", "replacement", "--pages", "5"),
                List.of("bench", "replacement", "--uses", "0"),
                List.of("bench", "replacement", "--pool", "0%"),
                List.of("bench", "replacement", "--pool", "5 percent"),
                List.of("bench", "replacement", "--policy", "lru"),
                List.of("bench", "replacement", "--generate", "zipf"),
                List.of("recover"),
                List.of("recover", "somewhere"),
                List.of("recover", "somewhere", "--to", "x", "--in-place"),
                List.of("recover", "somewhere", "--in-place", "--shared-buffers", "8"));
    }

    @ParameterizedTest
    @MethodSource("wrongCommandLines")
    void aWrongCommandLineExitsWithTwoAndSaysWhy(List<String> arguments) {
        assertEquals(2, run(arguments.toArray(String[]::new)));
        List<String> lines = err.toString().lines().toList();
        assertEquals(2, lines.size(), err.toString());
        assertTrue(lines.get(0).startsWith("pgkernel: "), err.toString());
        assertTrue(lines.get(1).contains("--help"), err.toString());
    }

    @Test
    void aMissingDirectoryIsOneSentence(@TempDir Path temp) {
        Path missing = temp.resolve("nowhere");
        assertEquals(1, run("recover", missing.toString(), "--in-place"));
        assertEquals("pgkernel: not a directory: file=" + missing, err.toString().strip());
    }

    @Test
    void aDirectoryThatIsNoClusterIsOneSentenceAndStaysAsItIs(@TempDir Path temp)
            throws IOException {
        Path directory = Files.createDirectory(temp.resolve("plain"));
        Files.writeString(directory.resolve("note"), "mine");
        Path copy = temp.resolve("copy");
        assertEquals(1, run("recover", directory.toString(), "--to", copy.toString()));
        assertEquals(1, err.toString().strip().lines().count(), err.toString());
        assertFalse(Files.exists(copy), "a refused recovery leaves no copy behind");
        assertEquals(1, run("recover", directory.toString(), "--in-place"));
        try (Stream<Path> entries = Files.list(directory)) {
            assertEquals(List.of(directory.resolve("note")), entries.toList());
        }
    }

    @Test
    void aCopyNeverOverwrites(@TempDir Path temp) throws IOException {
        Path target = Files.createDirectory(temp.resolve("target"));
        assertEquals(1, run("recover", temp.toString(), "--to", target.toString()));
        assertTrue(err.toString().contains("exists already"), err.toString());
    }

    @Test
    void aCopyIntoTheDirectoryItselfOrBelowAMissingOneIsRefused(@TempDir Path temp)
            throws IOException {
        Path directory = Files.createDirectory(temp.resolve("data"));
        String inside = directory.resolve("copy").toString();
        assertEquals(1, run("recover", directory.toString(), "--to", inside));
        assertTrue(err.toString().contains("lies inside the directory itself"), err.toString());
        String below = temp.resolve("missing/copy").toString();
        assertEquals(1, run("recover", directory.toString(), "--to", below));
        assertTrue(err.toString().contains("there is no such file or directory"), err.toString());
        assertEquals(2, err.toString().strip().lines().count(), err.toString());
        try (Stream<Path> entries = Files.list(directory)) {
            assertEquals(List.of(), entries.toList());
        }
    }

    @Test
    void figuresThatCannotBeWrittenAreRefusedBeforeAnythingIsMade(@TempDir Path temp) {
        Path keep = temp.resolve("keep");
        Path csv = temp.resolve("missing/figures.csv");
        assertEquals(1, run("repro", "--keep", keep.toString(), "--csv", csv.toString()));
        assertEquals(
                "pgkernel: the figures cannot be written there: file=" + csv,
                err.toString().strip());
        assertFalse(Files.exists(keep));
    }

    @Test
    void aRefusedRunLeavesAnOldFileOfFiguresAsItIs(@TempDir Path temp) throws IOException {
        Path keep = Files.createDirectory(temp.resolve("keep"));
        Files.writeString(keep.resolve("note"), "mine");
        Path csv = Files.writeString(temp.resolve("figures.csv"), "old");
        assertEquals(1, run("repro", "--keep", keep.toString(), "--csv", csv.toString()));
        assertTrue(err.toString().contains("not empty"), err.toString());
        assertEquals("old", Files.readString(csv));
    }
}
