package org.pgkernel.testkit.golden;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What came out of a script, by isolation level and interleaving; as text, the interleavings by
 * outcome:
 *
 * <pre>
 * read committed: 20 interleavings, 2 outcomes
 *   A, 8 of 20
 *     s1: read (1,100); write 1 row; end ok
 *     finally: (1,110)
 *     in 112122 11212~2
 * </pre>
 */
public final class GoldenOutcomes {
    private static final int LINE = 110;

    private final Map<String, Map<String, String>> byLevel = new LinkedHashMap<>();

    public void add(String level, ScriptRunner.Run run) {
        byLevel.computeIfAbsent(level, each -> new LinkedHashMap<>())
                .put(run.interleaving(), run.outcome());
    }

    /** Outcomes by interleaving; empty for an unknown level. */
    public Map<String, String> of(String level) {
        return byLevel.getOrDefault(level, Map.of());
    }

    /** Everything that a script comes to on a target. */
    public static GoldenOutcomes of(GoldenScript script, ScriptTarget target) {
        GoldenOutcomes outcomes = new GoldenOutcomes();
        for (String level : script.levels()) {
            new ScriptRunner(script, target).all(level).forEach(run -> outcomes.add(level, run));
        }
        return outcomes;
    }

    /** Reads what {@link #toString} wrote. */
    public static GoldenOutcomes parse(String text) {
        GoldenOutcomes outcomes = new GoldenOutcomes();
        String level = "";
        StringBuilder outcome = new StringBuilder();
        boolean listing = false;
        for (String line : text.split("\n")) {
            String words = line.strip();
            if (words.isEmpty()) {
                continue;
            }
            if (!line.startsWith(" ")) {
                level = words.substring(0, words.indexOf(':'));
            } else if (!line.startsWith("    ")) {
                outcome.setLength(0);
                listing = false;
            } else if (listing || words.startsWith("in ")) {
                listing = true;
                for (String each : words.replaceFirst("^in ", "").split(" ")) {
                    outcomes.add(level, new ScriptRunner.Run(each, outcome.toString()));
                }
            } else {
                outcome.append(words).append('\n');
            }
        }
        return outcomes;
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        byLevel.forEach((level, outcomes) -> append(text, level, outcomes));
        return text.toString();
    }

    private static void append(StringBuilder text, String level, Map<String, String> outcomes) {
        Map<String, List<String>> classes = new LinkedHashMap<>();
        outcomes.forEach(
                (interleaving, outcome) ->
                        classes.computeIfAbsent(outcome, each -> new ArrayList<>())
                                .add(interleaving));
        text.append(level)
                .append(": ")
                .append(outcomes.size())
                .append(" interleavings, ")
                .append(classes.size())
                .append(classes.size() == 1 ? " outcome\n" : " outcomes\n");
        int number = 0;
        for (Map.Entry<String, List<String>> each : classes.entrySet()) {
            text.append("  ")
                    .append(letters(number++))
                    .append(", ")
                    .append(each.getValue().size())
                    .append(" of ")
                    .append(outcomes.size())
                    .append('\n');
            for (String line : each.getKey().split("\n")) {
                text.append("    ").append(line).append('\n');
            }
            appendWrapped(text, each.getValue());
        }
    }

    /** A to Z, then AA on. */
    private static String letters(int number) {
        String last = String.valueOf((char) ('A' + number % 26));
        return number < 26 ? last : letters(number / 26 - 1) + last;
    }

    private static void appendWrapped(StringBuilder text, List<String> interleavings) {
        StringBuilder line = new StringBuilder("    in");
        for (String each : interleavings) {
            if (line.length() + each.length() >= LINE) {
                text.append(line).append('\n');
                line = new StringBuilder("      ");
            }
            line.append(' ').append(each);
        }
        text.append(line).append('\n');
    }
}
