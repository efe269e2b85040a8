package org.pgkernel.it.crash;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WorkDirectory;
import org.pgkernel.testkit.golden.PostgresTarget;
import org.pgkernel.testkit.golden.ScriptStatement;
import org.pgkernel.testkit.golden.ScriptStatement.Condition;

/** The crash matrix's model says what PostgreSQL says, statement by statement. */
class ModelIT {
    private static final int SEEDS = 12;
    private static final int STEPS = 150;

    @Test
    void theModelShowsWhatPostgresShows() throws Exception {
        try (WorkDirectory work = WorkDirectory.create("pgkernel-it-model")) {
            PostgresServer.initdb(PostgresBinaries.judge(), work.resolve("data"), false, 16);
            try (PostgresServer server =
                            PostgresServer.builder(PostgresBinaries.judge(), work.resolve("data"))
                                    .settings(PostgresServer.quietSettings())
                                    .connectable()
                                    .start();
                    Connection connection = server.connect("postgres")) {
                int compared = 0;
                for (long seed = 1; seed <= SEEDS; seed++) {
                    compared += compare(connection, seed);
                }
                System.out.println("compared " + compared + " statements");
            }
        }
    }

    private static int compare(Connection connection, long seed) throws SQLException {
        Model model = new Model();
        List<Step> steps = new ArrayList<>(StepGenerator.preparation(seed));
        steps.addAll(StepGenerator.workload(seed, STEPS));
        int compared = 0;
        for (Step step : steps) {
            ScriptStatement statement =
                    switch (step) {
                        case Step.Statement each -> each.statement();
                        case Step.CommitAsynchronously commit -> new ScriptStatement.Commit();
                        default -> null;
                    };
            if (statement != null) {
                assertEquals(
                        PostgresTarget.execute(connection, sql(statement)),
                        model.execute(statement),
                        "seed " + seed + ": " + step);
                compared++;
            }
        }
        PostgresTarget.execute(connection, "rollback");
        for (String table : model.committed().keySet()) {
            assertEquals(
                    PostgresTarget.execute(connection, "select * from " + table),
                    model.committed().get(table).text(),
                    "seed " + seed + ": " + table);
            PostgresTarget.execute(connection, "drop table " + table);
        }
        return compared;
    }

    private static String sql(ScriptStatement statement) {
        return switch (statement) {
            case ScriptStatement.Begin begin -> "begin";
            case ScriptStatement.Commit commit -> "commit";
            case ScriptStatement.Rollback rollback -> "rollback";
            case ScriptStatement.Savepoint savepoint -> "savepoint " + savepoint.name();
            case ScriptStatement.RollbackTo to -> "rollback to " + to.name();
            case ScriptStatement.Release release -> "release " + release.name();
            case ScriptStatement.CreateTable create ->
                    "create table "
                            + create.table()
                            + create.columns().stream()
                                    .map(each -> each.name() + (each.text() ? " text" : " int"))
                                    .collect(Collectors.joining(", ", " (", ")"));
            case ScriptStatement.DropTable drop -> "drop table " + drop.table();
            case ScriptStatement.Truncate truncate -> "truncate " + truncate.table();
            case ScriptStatement.Vacuum vacuum -> "vacuum " + vacuum.table();
            case ScriptStatement.Insert insert ->
                    "insert into "
                            + insert.table()
                            + " values "
                            + insert.rows().stream()
                                    .map(
                                            row ->
                                                    row.stream()
                                                            .map(ModelIT::literal)
                                                            .collect(
                                                                    Collectors.joining(
                                                                            ", ", "(", ")")))
                                    .collect(Collectors.joining(", "));
            case ScriptStatement.Delete delete ->
                    "delete from " + delete.table() + where(delete.where());
            case ScriptStatement.Update update ->
                    "update "
                            + update.table()
                            + " set "
                            + update.set().stream()
                                    .map(
                                            each ->
                                                    each.column()
                                                            + " = "
                                                            + (each.added()
                                                                    ? each.column() + " + "
                                                                    : "")
                                                            + literal(each.value()))
                                    .collect(Collectors.joining(", "))
                            + where(update.where());
            case ScriptStatement.Select select ->
                    "select * from "
                            + select.table()
                            + where(select.where())
                            + (select.lock() == null
                                    ? ""
                                    : " for " + select.lock().name().replace('_', ' '));
        };
    }

    private static String where(List<Condition> conditions) {
        return conditions.stream()
                .map(
                        each ->
                                each.column()
                                        + (each.modulus() == 0 ? "" : " % " + each.modulus())
                                        + " "
                                        + each.operator()
                                        + " "
                                        + each.value())
                .collect(Collectors.joining(" and ", conditions.isEmpty() ? "" : " where ", ""));
    }

    private static String literal(Object value) {
        return switch (value) {
            case null -> "null";
            case String text -> "'" + text.replace("'", "''") + "'";
            default -> value.toString();
        };
    }
}
