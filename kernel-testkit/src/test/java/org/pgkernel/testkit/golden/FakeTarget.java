package org.pgkernel.testkit.golden;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * One number for each table, locked by who updates it until that session's transaction ends; read
 * without a lock. Single-threaded: a session that waits goes on when the lock is given to it.
 */
final class FakeTarget implements ScriptTarget {
    private final class Session implements ScriptSession {
        private final List<GoldenScript.Statement> left = new ArrayList<>();
        private final List<String> results = new ArrayList<>();
        private String waitsFor;

        @Override
        public void start(GoldenScript.Step step) {
            left.addAll(step.statements());
            results.clear();
            goOn();
        }

        private void goOn() {
            while (!left.isEmpty() && waitsFor == null) {
                switch (left.getFirst().parsed()) {
                    case ScriptStatement.Update update -> update(update);
                    case ScriptStatement.Select select ->
                            done("" + numbers.getOrDefault(select.table(), 0));
                    case ScriptStatement.Commit commit -> {
                        done("ok");
                        release();
                    }
                    default -> throw new AssertionError(left.getFirst());
                }
            }
        }

        private void done(String result) {
            left.removeFirst();
            results.add(result);
        }

        private void update(ScriptStatement.Update update) {
            Session owner = owners.get(update.table());
            if (owner != null && owner != this) {
                waitsFor = update.table();
                return;
            }
            owners.put(update.table(), this);
            numbers.merge(update.table(), (Integer) update.set().get(0).value(), Integer::sum);
            done("ok");
        }

        private void release() {
            owners.values().removeIf(owner -> owner == this);
            for (Session session : sessions) {
                if (session.waitsFor != null && !owners.containsKey(session.waitsFor)) {
                    session.waitsFor = null;
                    session.goOn();
                }
            }
        }

        @Override
        public boolean finished() {
            return left.isEmpty();
        }

        @Override
        public boolean blocked() {
            return waitsFor != null;
        }

        @Override
        public String result() {
            return String.join(" ", results);
        }
    }

    private final Map<String, Integer> numbers = new TreeMap<>();
    private final Map<String, Session> owners = new TreeMap<>();
    private final List<Session> sessions = new ArrayList<>();

    @Override
    public String alone(List<GoldenScript.Statement> statements) {
        if (statements.isEmpty()) {
            return "";
        }
        return numbers.toString();
    }

    @Override
    public ScriptSession open(String name, String level) {
        sessions.add(new Session());
        return sessions.getLast();
    }

    @Override
    public void awaitChange() {
        throw new AssertionError("nothing goes on by itself here");
    }

    @Override
    public void closeSessions() {
        sessions.clear();
        owners.clear();
        numbers.clear();
    }
}
