package org.pgkernel.testkit.golden;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Runs a golden script in one order of its steps, or in all of them. A session that waits is not
 * asked to go on: from each place the runner goes on with every session that can, and no order is
 * left out.
 */
public final class ScriptRunner {
    private static final int MOST_INTERLEAVINGS = 20_000;
    private static final long LIMIT_SECONDS = 60;

    /**
     * One run.
     *
     * @param interleaving the sessions' numbers in the order of their steps, each followed by ~ if
     *     that step had to wait
     * @param outcome results of all steps, and of the last look
     */
    public record Run(String interleaving, String outcome) {}

    private record Trace(List<Integer> order, List<List<Integer>> choices, Run run) {}

    private final GoldenScript script;
    private final ScriptTarget target;

    public ScriptRunner(GoldenScript script, ScriptTarget target) {
        this.script = script;
        this.target = target;
    }

    /** All orders, in lexicographic order. */
    public List<Run> all(String level) {
        List<Run> runs = new ArrayList<>();
        for (List<Integer> prefix = List.of(); prefix != null; ) {
            Trace trace = run(level, prefix);
            if (!trace.order.subList(0, prefix.size()).equals(prefix)) {
                throw new AssertionError("not repeatable: " + prefix + " became " + trace.order);
            }
            runs.add(trace.run);
            if (runs.size() > MOST_INTERLEAVINGS) {
                throw new AssertionError("more than " + MOST_INTERLEAVINGS + " interleavings");
            }
            prefix = after(trace);
        }
        return runs;
    }

    /** The run that an {@link Run#interleaving} tells. */
    public Run one(String level, String interleaving) {
        List<Integer> order =
                interleaving.replace("~", "").chars().mapToObj(digit -> digit - '1').toList();
        return run(level, order).run;
    }

    /** The beginning of the next order: at the last place where there was another choice. */
    private static List<Integer> after(Trace trace) {
        for (int i = trace.order.size() - 1; i >= 0; i--) {
            for (int choice : trace.choices.get(i)) {
                if (choice > trace.order.get(i)) {
                    List<Integer> prefix = new ArrayList<>(trace.order.subList(0, i));
                    prefix.add(choice);
                    return prefix;
                }
            }
        }
        return null;
    }

    private Trace run(String level, List<Integer> prefix) {
        target.alone(script.setup());
        Live live = new Live(level);
        try {
            List<Integer> order = new ArrayList<>();
            List<List<Integer>> choices = new ArrayList<>();
            StringBuilder interleaving = new StringBuilder();
            for (List<Integer> can = live.able(); !can.isEmpty(); can = live.able()) {
                int wanted = order.size() < prefix.size() ? prefix.get(order.size()) : can.get(0);
                if (!can.contains(wanted)) {
                    throw new AssertionError(
                            "session "
                                    + (wanted + 1)
                                    + " cannot go on after "
                                    + interleaving
                                    + ", only "
                                    + can);
                }
                order.add(wanted);
                choices.add(can);
                live.step(wanted);
                interleaving.append(wanted + 1).append(live.waits(wanted) ? "~" : "");
            }
            live.requireAllDone(interleaving);
            String outcome = live.results();
            if (!script.lastLook().isEmpty()) {
                outcome += "finally: " + target.alone(script.lastLook()) + "\n";
            }
            Run run = new Run(interleaving.toString(), outcome);
            return new Trace(order, choices, run);
        } finally {
            target.closeSessions();
            target.alone(script.teardown());
        }
    }

    /** The sessions of one run. */
    private final class Live {
        private final List<ScriptSession> sessions = new ArrayList<>();
        private final List<List<String>> results = new ArrayList<>();
        private final int[] begun = new int[script.sessions().size()];

        Live(String level) {
            for (GoldenScript.Session session : script.sessions()) {
                sessions.add(target.open(session.name(), level));
                results.add(new ArrayList<>());
            }
        }

        List<Integer> able() {
            List<Integer> able = new ArrayList<>();
            for (int i = 0; i < begun.length; i++) {
                if (sessions.get(i).finished() && begun[i] < steps(i).size()) {
                    able.add(i);
                }
            }
            return able;
        }

        private List<GoldenScript.Step> steps(int session) {
            return script.sessions().get(session).steps();
        }

        void step(int session) {
            sessions.get(session).start(steps(session).get(begun[session]++));
            settle();
            for (int i = 0; i < begun.length; i++) {
                if (sessions.get(i).finished() && results.get(i).size() < begun[i]) {
                    String name = steps(i).get(begun[i] - 1).name();
                    results.get(i).add(name + " " + sessions.get(i).result());
                }
            }
        }

        boolean waits(int session) {
            return !sessions.get(session).finished();
        }

        /**
         * Until every session is finished or waits. Looked at twice: one that was seen waiting may
         * have been woken by another's step that ended before that one was looked at; then it is at
         * work, or finished, at the second look.
         */
        private void settle() {
            long start = System.nanoTime();
            while (!(quiet() && quiet())) {
                if (System.nanoTime() - start > TimeUnit.SECONDS.toNanos(LIMIT_SECONDS)) {
                    throw new AssertionError("neither finished nor waiting: " + results);
                }
                target.awaitChange();
            }
        }

        private boolean quiet() {
            for (ScriptSession session : sessions) {
                if (!session.finished() && !session.blocked()) {
                    return false;
                }
            }
            return true;
        }

        void requireAllDone(CharSequence interleaving) {
            for (int i = 0; i < begun.length; i++) {
                if (waits(i)) {
                    throw new AssertionError(
                            "session " + (i + 1) + " waits for ever after " + interleaving);
                }
            }
        }

        String results() {
            StringBuilder all = new StringBuilder();
            for (int i = 0; i < begun.length; i++) {
                all.append(script.sessions().get(i).name())
                        .append(": ")
                        .append(String.join("; ", results.get(i)))
                        .append('\n');
            }
            return all.toString();
        }
    }
}
