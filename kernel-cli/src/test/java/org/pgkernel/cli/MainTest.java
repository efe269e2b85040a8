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
                List.of("repro", "--strategy", "dlist"),
                List.of("repro", "--operation", "drop"),
                List.of("repro", "--toast", "perhaps"),
                List.of("repro", "--base", "full"),
                List.of("repro", "--repetitions", "-1"),
                List.of("repro", "--postgres", "9"),
                List.of("recover"),
                List.of("recover", "somewhere"),
                List.of("recover", "somewhere", "--to", "x", "--in-place"),
                List.of("recover", "somewhere", "--in-place", "--shared-buffers", "8"));
    }

    @ParameterizedTest
    @MethodSource("wrongCommandLines")
    void aWrongCommandLineExitsWithTwoAndSaysWhy(List<String> arguments) {
        assertEquals(2, run(arguments.toArray(String[]::new)));
        assertFalse(err.toString().isBlank());
        assertFalse(err.toString().contains("\tat "), err.toString());
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
}
