package org.pgkernel.it.sql;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.pgkernel.base.error.DeadlockException;
import org.pgkernel.base.error.LockNotAvailableException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.base.error.SerializationException;
import org.pgkernel.cluster.Backend;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.Isolation;
import org.pgkernel.cluster.Statement;
import org.pgkernel.cluster.Table;
import org.pgkernel.cluster.TableOptions;
import org.pgkernel.cluster.TableScan;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.LockWait;
import org.pgkernel.heap.RowLock;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.heap.TupleOutcome;
import org.pgkernel.heap.VacuumOptions;
import org.pgkernel.testkit.golden.PostgresTarget;
import org.pgkernel.testkit.golden.ScriptStatement;
import org.pgkernel.testkit.golden.ScriptStatement.Assignment;
import org.pgkernel.testkit.golden.ScriptStatement.Column;
import org.pgkernel.testkit.golden.ScriptStatement.Condition;
import org.pgkernel.testkit.golden.ThreadedSession;
import org.pgkernel.xact.FreezeSettings;

/**
 * A backend of the kernel under the little SQL of golden scripts. What PostgreSQL's executor does
 * is done here: conditions, and at READ COMMITTED the second look at a row that was changed while
 * it was waited for. Outside a transaction each statement is one.
 */
public final class KernelSql implements SqlEngine {
    private final Backend backend;
    private final Isolation isolation;
    private final List<String> savepoints = new ArrayList<>();
    private int vacuums;

    public KernelSql(Cluster cluster) {
        this(cluster, Isolation.READ_COMMITTED);
    }

    public KernelSql(Cluster cluster, Isolation isolation) {
        this.backend = cluster.newBackend();
        this.isolation = isolation;
    }

    @Override
    public String execute(ScriptStatement statement) throws ThreadedSession.Failure {
        try {
            return executeOrFail(statement);
        } catch (ThreadedSession.Failure e) {
            // A server undoes what failed at once, and so lets go of what others wait for.
            // (PostgreSQL: AbortCurrentTransaction in PostgresMain.)
            if (savepoints.isEmpty()) {
                backend.rollback();
            } else {
                backend.rollbackTo(savepoints.getLast());
            }
            throw e;
        }
    }

    private String executeOrFail(ScriptStatement statement) throws ThreadedSession.Failure {
        try {
            return switch (statement) {
                case ScriptStatement.Begin begin -> {
                    savepoints.clear();
                    backend.begin(isolation);
                    yield ThreadedSession.OK;
                }
                case ScriptStatement.Commit commit -> {
                    savepoints.clear();
                    backend.commit(true);
                    yield ThreadedSession.OK;
                }
                case ScriptStatement.Rollback rollback -> {
                    savepoints.clear();
                    backend.rollback();
                    yield ThreadedSession.OK;
                }
                case ScriptStatement.Savepoint savepoint -> {
                    backend.savepoint(savepoint.name());
                    savepoints.add(savepoint.name());
                    yield ThreadedSession.OK;
                }
                case ScriptStatement.RollbackTo to -> {
                    backend.rollbackTo(to.name());
                    cutSavepoints(savepoints.lastIndexOf(to.name()) + 1);
                    yield ThreadedSession.OK;
                }
                case ScriptStatement.Release release -> {
                    backend.release(release.name());
                    cutSavepoints(savepoints.lastIndexOf(release.name()));
                    yield ThreadedSession.OK;
                }
                case ScriptStatement.Vacuum vacuum -> {
                    backend.vacuum(vacuum.table(), vacuumOptions());
                    yield ThreadedSession.OK;
                }
                default -> inTransaction(statement);
            };
        } catch (SerializationException e) {
            throw new ThreadedSession.Failure("serialization failure");
        } catch (DeadlockException e) {
            throw new ThreadedSession.Failure("deadlock");
        } catch (LockNotAvailableException e) {
            throw new ThreadedSession.Failure("lock not available");
        }
    }

    private void cutSavepoints(int keep) {
        savepoints.subList(keep, savepoints.size()).clear();
    }

    private String inTransaction(ScriptStatement statement) throws ThreadedSession.Failure {
        if (backend.inTransaction()) {
            return withRows(statement);
        }
        backend.begin(Isolation.READ_COMMITTED);
        try {
            String result = withRows(statement);
            backend.commit(true);
            return result;
        } finally {
            backend.rollback();
        }
    }

    /**
     * Whatever looks at rows and then changes or locks them does it in one statement: as long as
     * its snapshot is held, no place of a row that it found is another row's. (R01)
     */
    private String withRows(ScriptStatement statement) throws ThreadedSession.Failure {
        return switch (statement) {
            case ScriptStatement.Update update -> {
                try (Statement scope = backend.statement()) {
                    yield update(update);
                }
            }
            case ScriptStatement.Delete delete -> {
                try (Statement scope = backend.statement()) {
                    yield delete(delete);
                }
            }
            case ScriptStatement.Select select -> {
                try (Statement scope = backend.statement()) {
                    yield select(select);
                }
            }
            default -> withoutRows(statement);
        };
    }

    private String withoutRows(ScriptStatement statement) throws ThreadedSession.Failure {
        return switch (statement) {
            case ScriptStatement.CreateTable create -> {
                backend.createTable(
                        create.table(),
                        descriptor(create),
                        TableOptions.DEFAULT
                                .withUnlogged(create.unlogged())
                                .withFillFactor(create.fillfactor()));
                yield ThreadedSession.OK;
            }
            case ScriptStatement.DropTable drop -> {
                backend.dropTable(drop.table());
                yield ThreadedSession.OK;
            }
            case ScriptStatement.Truncate truncate -> {
                backend.truncate(truncate.table());
                yield ThreadedSession.OK;
            }
            case ScriptStatement.Insert insert -> insert(insert);
            default ->
                    throw new IllegalArgumentException("no statement of a session: " + statement);
        };
    }

    private static TupleDescriptor descriptor(ScriptStatement.CreateTable create) {
        List<Attribute> columns = new ArrayList<>();
        Set<String> key = new HashSet<>();
        for (int i = 0; i < create.columns().size(); i++) {
            Column column = create.columns().get(i);
            columns.add(Attribute.of(column.name(), column.text() ? "text" : "int4"));
            if (create.key().contains(i)) {
                key.add(column.name());
            }
        }
        return new TupleDescriptor(columns, key, key);
    }

    private String insert(ScriptStatement.Insert insert) {
        Table table = backend.table(insert.table());
        List<List<Object>> rows = insert.rows();
        if (rows.size() == 1) {
            table.insert(row(table, rows.getFirst()));
        } else {
            RowValues[] values = new RowValues[rows.size()];
            for (int i = 0; i < values.length; i++) {
                values[i] = row(table, rows.get(i));
            }
            table.multiInsert(values, values.length, null);
        }
        return PostgresTarget.count(rows.size());
    }

    private static RowValues row(Table table, List<Object> values) {
        RowValues row = table.newRow();
        for (int i = 0; i < values.size(); i++) {
            set(row, i, values.get(i));
        }
        return row;
    }

    private static void set(RowValues row, int i, Object value) {
        switch (value) {
            case null -> row.setNull(i);
            case Integer number -> row.setNumber(i, number);
            default -> row.setText(i, (String) value);
        }
    }

    /** A row as a scan found it, and where. */
    private record Found(long tid, RowValues row, List<Object> values) {}

    private String update(ScriptStatement.Update update) {
        Table table = backend.table(update.table());
        RowLock lock = RowLock.NO_KEY_UPDATE;
        for (Assignment each : update.set()) {
            if (table.descriptor().isKey(index(table, each.column()))) {
                lock = RowLock.UPDATE;
            }
        }
        int count = 0;
        for (Found first : find(table, update.where())) {
            for (Found found = first; found != null; ) {
                set(table, found, update.set());
                TupleOutcome outcome = table.update(found.tid, found.row);
                count += outcome == TupleOutcome.OK ? 1 : 0;
                found = again(table, found, outcome, lock, LockWait.WAIT, update.where());
            }
        }
        return PostgresTarget.count(count);
    }

    /** What is not set stays as it is stored, out of line perhaps. */
    private static void set(Table table, Found found, List<Assignment> set) {
        for (Assignment each : set) {
            int i = index(table, each.column());
            if (each.added()) {
                found.row.setNumber(i, (Integer) found.values.get(i) + (Integer) each.value());
            } else {
                set(found.row, i, each.value());
            }
        }
    }

    private String delete(ScriptStatement.Delete delete) {
        Table table = backend.table(delete.table());
        int count = 0;
        for (Found first : find(table, delete.where())) {
            for (Found found = first; found != null; ) {
                TupleOutcome outcome = table.delete(found.tid);
                count += outcome == TupleOutcome.OK ? 1 : 0;
                found = again(table, found, outcome, RowLock.UPDATE, LockWait.WAIT, delete.where());
            }
        }
        return PostgresTarget.count(count);
    }

    /**
     * The row's newest version, locked, if the one that was found is not the newest any more and
     * this one fulfils the condition, too; else null: there is no more to do. (PostgreSQL:
     * EvalPlanQual.)
     */
    private Found again(
            Table table,
            Found found,
            TupleOutcome outcome,
            RowLock lock,
            LockWait wait,
            List<Condition> where) {
        if (outcome != TupleOutcome.UPDATED) {
            return null;
        }
        RowValues row = table.newRow();
        if (table.lockLatest(found.tid, lock, wait, row) != TupleOutcome.OK) {
            return null;
        }
        List<Object> values = values(table, row);
        return fulfils(table, values, where) ? new Found(table.newTid(), row, values) : null;
    }

    private String select(ScriptStatement.Select select) {
        Table table = backend.table(select.table());
        List<List<Object>> rows = new ArrayList<>();
        for (Found found : find(table, select.where())) {
            Found locked = select.lock() == null ? found : lock(table, found, select);
            if (locked != null) {
                rows.add(locked.values);
            }
        }
        return PostgresTarget.rows(rows);
    }

    private Found lock(Table table, Found found, ScriptStatement.Select select) {
        RowLock lock = RowLock.valueOf(select.lock().name());
        LockWait wait =
                switch (select.ifLocked()) {
                    case WAIT -> LockWait.WAIT;
                    case NOWAIT -> LockWait.NOWAIT;
                    case SKIP -> LockWait.SKIP_LOCKED;
                };
        TupleOutcome outcome = table.lock(found.tid, lock, wait);
        return outcome == TupleOutcome.OK
                ? found
                : again(table, found, outcome, lock, wait, select.where());
    }

    private List<Found> find(Table table, List<Condition> where) {
        List<Found> all = new ArrayList<>();
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                RowValues row = table.newRow();
                scan.read(row);
                List<Object> values = values(table, row);
                if (fulfils(table, values, where)) {
                    row.keep();
                    all.add(new Found(scan.tid(), row, values));
                }
            }
        }
        return all;
    }

    private static List<Object> values(Table table, RowValues row) {
        List<Object> values = new ArrayList<>();
        for (int i = 0; i < table.descriptor().count(); i++) {
            values.add(
                    row.isNull(i)
                            ? null
                            : table.descriptor().attribute(i).byValue()
                                    ? (Object) (int) row.number(i)
                                    : table.text(row, i));
        }
        return values;
    }

    private static boolean fulfils(Table table, List<Object> values, List<Condition> where) {
        return where.stream()
                .allMatch(each -> each.holds((Integer) values.get(index(table, each.column()))));
    }

    private static int index(Table table, String column) {
        for (int i = 0; i < table.descriptor().count(); i++) {
            if (table.descriptor().attribute(i).name().equals(column)) {
                return i;
            }
        }
        throw new IllegalArgumentException("no column " + column);
    }

    /** Every other vacuum freezes all that it can. */
    private VacuumOptions vacuumOptions() {
        return vacuums++ % 2 == 0
                ? VacuumOptions.DEFAULT
                : VacuumOptions.DEFAULT.withFreeze(FreezeSettings.FREEZE);
    }

    @Override
    public void commitAsynchronously() {
        savepoints.clear();
        backend.commit(false);
    }

    @Override
    public boolean exists(String table) {
        try {
            backend.table(table);
            return true;
        } catch (RefusedException e) {
            return false;
        }
    }

    /** How a row is told. */
    public static String rows(Object... values) {
        return PostgresTarget.rows(List.of(List.of(values)));
    }

    @Override
    public void close() {
        backend.close();
    }
}
