package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** docs/field-cases.md names tests that exist, and every case that a test names. */
class FieldCasesDocTest {
    private static final Pattern NAMED = Pattern.compile("`(\\w+)#(\\w+)`");
    private static final Pattern CASE = Pattern.compile("\\b([CR][0-3]\\d)\\b");
    private static final String TEST =
            "@(?:Test|ParameterizedTest|RepeatedTest|Property|Example)\\b(?:[^;{}]|\\{[^;{}]*\\})*";
    private static final Pattern LITERAL = Pattern.compile("\"(?:\\\\.|[^\"\\\\])*\"");
    private static final Pattern TOLD =
            Pattern.compile("@(?:DisplayName|Label)\\(\\s*\"(?<words>[^\"]*)\"");

    private static String document;

    /** By simple class name; a name that two modules use has two sources. */
    private static final Map<String, List<String>> SOURCES = new TreeMap<>();

    @BeforeAll
    static void read() throws IOException {
        Path root = Path.of("").toAbsolutePath();
        while (!Files.exists(root.resolve("docs/field-cases.md"))) {
            root = root.getParent();
        }
        document = Files.readString(root.resolve("docs/field-cases.md"));
        try (Stream<Path> modules = Files.list(root)) {
            for (Path module : (Iterable<Path>) modules::iterator) {
                Path tests = module.resolve("src/test/java");
                if (Files.isDirectory(tests)) {
                    readAll(tests);
                }
            }
        }
        assertTrue(SOURCES.size() > 100, "test classes: " + SOURCES.size());
    }

    private static void readAll(Path tests) throws IOException {
        try (Stream<Path> files = Files.walk(tests)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                String name = file.getFileName().toString();
                if (name.endsWith(".java")) {
                    SOURCES.computeIfAbsent(
                                    name.substring(0, name.length() - 5), n -> new ArrayList<>())
                            .add(Files.readString(file));
                }
            }
        }
    }

    private static boolean hasTest(String type, String method) {
        Pattern wanted = Pattern.compile(TEST + "\\bvoid\\s+" + method + "\\s*\\(", Pattern.DOTALL);
        return SOURCES.getOrDefault(type, List.of()).stream()
                .map(source -> LITERAL.matcher(source).replaceAll("\"\""))
                .anyMatch(source -> wanted.matcher(source).find());
    }

    @Test
    void everyTestThatIsNamedExists() {
        List<String> missing = new ArrayList<>();
        int named = 0;
        for (Matcher each = NAMED.matcher(document); each.find(); named++) {
            if (!hasTest(each.group(1), each.group(2))) {
                missing.add(each.group());
            }
        }
        assertEquals(List.of(), missing);
        assertTrue(named > 100, "named: " + named);
    }

    /** A row: case, what must not happen, tests, what is open. */
    @Test
    void everyCaseOfTheTablesHasATest() {
        int rows = 0;
        for (String line :
                document.lines().filter(l -> l.startsWith("| C") || l.startsWith("| R")).toList()) {
            assertEquals(6, line.split("\\|", -1).length, line);
            assertTrue(NAMED.matcher(line.split("\\|")[3]).find(), line);
            rows++;
        }
        assertTrue(rows > 40, "rows: " + rows);
    }

    @Test
    void everyCaseThatATestNamesIsInTheTables() {
        TreeSet<String> told = new TreeSet<>();
        document.lines()
                .filter(line -> line.startsWith("| "))
                .forEach(line -> cases(line.split("\\|")[1], told));
        TreeSet<String> named = new TreeSet<>();
        for (List<String> sources : SOURCES.values()) {
            for (String source : sources) {
                for (Matcher each = TOLD.matcher(source); each.find(); ) {
                    cases(each.group("words"), named);
                }
            }
        }
        assertTrue(named.size() > 30, "named: " + named);
        named.removeAll(told);
        assertEquals(new TreeSet<>(), named, "tests name these cases, the tables do not");
    }

    private static void cases(String text, TreeSet<String> to) {
        for (Matcher each = CASE.matcher(text); each.find(); ) {
            to.add(each.group(1));
        }
    }
}
