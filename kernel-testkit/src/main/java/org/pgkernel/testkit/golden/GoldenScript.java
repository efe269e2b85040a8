package org.pgkernel.testkit.golden;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A golden script: sessions with named steps, and what came out in every order of the steps. Its
 * text:
 *
 * <pre>
 * # What goes wrong, or must not, in plain words.
 * levels read committed, repeatable read
 * setup
 *     STATEMENT
 * session s1
 *     STEP: STATEMENT; STATEMENT
 * finally
 *     STATEMENT
 * teardown
 *     STATEMENT
 * expected
 *     written by {@link GoldenOutcomes}
 * </pre>
 *
 * {@code setup} runs before, {@code finally} and {@code teardown} after each run, when nobody else
 * is at work; results of {@code finally} belong to the outcome. {@code commit} and {@code rollback}
 * end a step.
 */
public record GoldenScript(
        String comment,
        List<String> levels,
        List<Statement> setup,
        List<Session> sessions,
        List<Statement> lastLook,
        List<Statement> teardown,
        String expected) {
    public static final List<String> LEVELS = List.of("read committed", "repeatable read");

    private static final String EXPECTED = "expected\n";

    /** A statement and its text. */
    public record Statement(String text, ScriptStatement parsed) {
        static Statement of(String text) {
            return new Statement(text, ScriptStatement.parse(text));
        }
    }

    public record Step(String name, List<Statement> statements) {}

    public record Session(String name, List<Step> steps) {}

    /**
     * @throws IllegalArgumentException that names the line, if the text is no script
     */
    public static GoldenScript parse(String text) {
        int cut = text.startsWith(EXPECTED) ? 0 : text.indexOf("\n" + EXPECTED) + 1;
        boolean has = cut > 0 || text.startsWith(EXPECTED);
        String script = has ? text.substring(0, cut) : text;
        String expected = has ? text.substring(cut + EXPECTED.length()) : "";
        return new Reader().read(script, expected);
    }

    /** The script's text with other expectations. */
    static String withExpected(String text, String expected) {
        int cut = text.indexOf("\n" + EXPECTED);
        String script = cut < 0 ? text.stripTrailing() + "\n\n" : text.substring(0, cut + 1);
        return script + EXPECTED + expected;
    }

    private static final class Reader {
        private final StringBuilder comment = new StringBuilder();
        private final List<Statement> setup = new ArrayList<>();
        private final List<Session> sessions = new ArrayList<>();
        private final List<Statement> lastLook = new ArrayList<>();
        private final List<Statement> teardown = new ArrayList<>();
        private List<String> levels = LEVELS;
        private String section = "";

        GoldenScript read(String script, String expected) {
            int number = 0;
            for (String line : script.split("\n")) {
                number++;
                try {
                    read(line);
                } catch (IllegalArgumentException e) {
                    throw new IllegalArgumentException("line " + number + ": " + e.getMessage(), e);
                }
            }
            return new GoldenScript(
                    comment.toString(), levels, setup, sessions, lastLook, teardown, expected);
        }

        private void read(String line) {
            String words = line.strip();
            if (words.startsWith("#")) {
                comment.append(words.substring(1).strip()).append('\n');
            } else if (words.isEmpty()) {
                // between sections
            } else if (!line.startsWith(" ")) {
                begin(words);
            } else {
                switch (section) {
                    case "setup" -> setup.add(Statement.of(words));
                    case "finally" -> lastLook.add(Statement.of(words));
                    case "teardown" -> teardown.add(Statement.of(words));
                    case "session" -> sessions.getLast().steps().add(step(words));
                    default -> throw new IllegalArgumentException("outside a section: " + words);
                }
            }
        }

        private void begin(String words) {
            section = words.split(" ", 2)[0];
            switch (section) {
                case "setup", "finally", "teardown" -> {
                    // their lines follow
                }
                case "session" ->
                        sessions.add(
                                new Session(
                                        words.substring("session".length()).strip(),
                                        new ArrayList<>()));
                case "levels" -> {
                    levels = Arrays.asList(words.substring("levels".length()).strip().split(", *"));
                    if (!LEVELS.containsAll(levels)) {
                        throw new IllegalArgumentException("levels are " + LEVELS);
                    }
                }
                default -> throw new IllegalArgumentException("no section: " + words);
            }
        }

        private static Step step(String words) {
            int colon = words.indexOf(':');
            if (colon < 0) {
                throw new IllegalArgumentException("not a step (NAME: STATEMENTS): " + words);
            }
            List<Statement> statements =
                    Arrays.stream(words.substring(colon + 1).split(";"))
                            .map(text -> Statement.of(text.strip()))
                            .toList();
            for (Statement each : statements.subList(0, statements.size() - 1)) {
                if (each.parsed() instanceof ScriptStatement.Commit
                        || each.parsed() instanceof ScriptStatement.Rollback) {
                    throw new IllegalArgumentException(each.text() + " does not end its step");
                }
            }
            return new Step(words.substring(0, colon).strip(), statements);
        }
    }
}
