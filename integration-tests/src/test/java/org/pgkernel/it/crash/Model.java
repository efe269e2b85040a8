package org.pgkernel.it.crash;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.pgkernel.testkit.golden.PostgresTarget;
import org.pgkernel.testkit.golden.ScriptStatement;
import org.pgkernel.testkit.golden.ScriptStatement.Assignment;
import org.pgkernel.testkit.golden.ScriptStatement.Column;
import org.pgkernel.testkit.golden.ScriptStatement.Condition;
import org.pgkernel.testkit.golden.ThreadedSession;

/** What one session's statements come to, without any storage. */
final class Model {
    /** How a table without rows is shown. */
    static final String NO_ROWS = PostgresTarget.rows(List.of());

    /** A table's columns and rows; rows are not changed but replaced. */
    record Table(List<Column> columns, boolean unlogged, List<List<Object>> rows) {
        /** The rows as a select shows them. */
        String text() {
            return PostgresTarget.rows(rows);
        }

        private int index(String column) {
            for (int i = 0; i < columns.size(); i++) {
                if (columns.get(i).name().equals(column)) {
                    return i;
                }
            }
            throw new IllegalArgumentException("no column " + column);
        }

        private boolean fulfils(List<Object> row, List<Condition> where) {
            return where.stream()
                    .allMatch(each -> each.holds((Integer) row.get(index(each.column()))));
        }

        private List<Object> changed(List<Object> row, List<Assignment> set) {
            List<Object> changed = new ArrayList<>(row);
            for (Assignment each : set) {
                int i = index(each.column());
                changed.set(
                        i,
                        each.added()
                                ? (Object) ((Integer) row.get(i) + (Integer) each.value())
                                : each.value());
            }
            return changed;
        }

        Table with(List<List<Object>> other) {
            return new Table(columns, unlogged, other);
        }
    }

    private record Savepoint(String name, TreeMap<String, Table> tables) {}

    private TreeMap<String, Table> committed = new TreeMap<>();
    private TreeMap<String, Table> current = new TreeMap<>();
    private final List<Savepoint> savepoints = new ArrayList<>();
    private boolean inTransaction;

    boolean inTransaction() {
        return inTransaction;
    }

    int savepoints() {
        return savepoints.size();
    }

    /** As the session sees them. */
    Map<String, Table> tables() {
        return current;
    }

    /** As others see them; not changed any more. */
    Map<String, Table> committed() {
        return committed;
    }

    /** After a crash that left {@code tables}. */
    void restart(Map<String, Table> tables) {
        committed = new TreeMap<>(tables);
        rollback();
    }

    private void rollback() {
        current = new TreeMap<>(committed);
        savepoints.clear();
        inTransaction = false;
    }

    /**
     * @return what the statement shows
     */
    String execute(ScriptStatement statement) {
        switch (statement) {
            case ScriptStatement.Begin begin -> inTransaction = true;
            case ScriptStatement.Commit commit -> {
                savepoints.clear();
                inTransaction = false;
            }
            case ScriptStatement.Rollback rollback -> rollback();
            case ScriptStatement.Savepoint savepoint ->
                    savepoints.add(new Savepoint(savepoint.name(), new TreeMap<>(current)));
            case ScriptStatement.RollbackTo to -> {
                cutSavepoints(to.name(), 1);
                current = new TreeMap<>(savepoints.getLast().tables);
            }
            case ScriptStatement.Release release -> cutSavepoints(release.name(), 0);
            default -> {
                String result = change(statement);
                commitUnlessInTransaction();
                return result;
            }
        }
        commitUnlessInTransaction();
        return ThreadedSession.OK;
    }

    private void commitUnlessInTransaction() {
        if (!inTransaction && !committed.equals(current)) {
            committed = new TreeMap<>(current);
        }
    }

    /** Keeps the savepoints before the named one, and with {@code more} that one. */
    private void cutSavepoints(String name, int more) {
        int at = savepoints.size() - 1;
        while (!savepoints.get(at).name.equals(name)) {
            at--;
        }
        savepoints.subList(at + more, savepoints.size()).clear();
    }

    private String change(ScriptStatement statement) {
        return switch (statement) {
            case ScriptStatement.CreateTable create -> {
                current.put(
                        create.table(), new Table(create.columns(), create.unlogged(), List.of()));
                yield ThreadedSession.OK;
            }
            case ScriptStatement.DropTable drop -> {
                current.remove(drop.table());
                yield ThreadedSession.OK;
            }
            case ScriptStatement.Truncate truncate -> {
                current.computeIfPresent(truncate.table(), (name, table) -> table.with(List.of()));
                yield ThreadedSession.OK;
            }
            case ScriptStatement.Insert insert -> insert(insert);
            case ScriptStatement.Delete delete -> delete(delete);
            case ScriptStatement.Update update -> update(update);
            case ScriptStatement.Select select -> select(select);
            case ScriptStatement.Vacuum vacuum -> ThreadedSession.OK;
            default -> throw new IllegalArgumentException("" + statement);
        };
    }

    private String insert(ScriptStatement.Insert insert) {
        Table table = current.get(insert.table());
        List<List<Object>> rows = new ArrayList<>(table.rows);
        rows.addAll(insert.rows());
        current.put(insert.table(), table.with(rows));
        return PostgresTarget.count(insert.rows().size());
    }

    private String delete(ScriptStatement.Delete delete) {
        Table table = current.get(delete.table());
        List<List<Object>> rows = new ArrayList<>(table.rows);
        rows.removeIf(row -> table.fulfils(row, delete.where()));
        current.put(delete.table(), table.with(rows));
        return PostgresTarget.count(table.rows.size() - rows.size());
    }

    private String update(ScriptStatement.Update update) {
        Table table = current.get(update.table());
        List<List<Object>> rows = new ArrayList<>(table.rows);
        int count = 0;
        for (int i = 0; i < rows.size(); i++) {
            if (table.fulfils(rows.get(i), update.where())) {
                rows.set(i, table.changed(rows.get(i), update.set()));
                count++;
            }
        }
        current.put(update.table(), table.with(rows));
        return PostgresTarget.count(count);
    }

    private String select(ScriptStatement.Select select) {
        Table table = current.get(select.table());
        List<List<Object>> rows = new ArrayList<>(table.rows);
        rows.removeIf(row -> !table.fulfils(row, select.where()));
        return PostgresTarget.rows(rows);
    }
}
