package org.pgkernel.testkit.golden;

import java.util.List;

/**
 * A statement of a golden script: so little SQL that a test can carry it out over a kernel without
 * a query language, while PostgreSQL takes the same text as it is.
 *
 * <pre>
 * begin | commit | rollback | savepoint S | rollback to S | release S
 * create [unlogged] table T (C int [primary key] | C text, …) [with (fillfactor = N)] | drop table T | truncate T | vacuum T
 * insert into T values (V, …), … | delete from T [where …]
 * update T set C = V | C = C + N, … [where …]
 * select * from T [where …] [for update | no key update | share | key share [nowait | skip locked]]
 * where: C [% N] =, &lt;&gt;, &lt;, &gt;, &lt;=, &gt;= N, joined by and
 * V: N | null | 'text' | repeat('text', N)
 * </pre>
 */
public sealed interface ScriptStatement {
    record Begin() implements ScriptStatement {}

    record Commit() implements ScriptStatement {}

    record Rollback() implements ScriptStatement {}

    record Savepoint(String name) implements ScriptStatement {}

    record RollbackTo(String name) implements ScriptStatement {}

    record Release(String name) implements ScriptStatement {}

    /**
     * @param key indexes of the primary key's columns
     * @param fillfactor 100 unless said
     */
    record CreateTable(
            String table, List<Column> columns, List<Integer> key, int fillfactor, boolean unlogged)
            implements ScriptStatement {}

    record DropTable(String table) implements ScriptStatement {}

    record Truncate(String table) implements ScriptStatement {}

    record Vacuum(String table) implements ScriptStatement {}

    /**
     * @param rows of Integer, String or null
     */
    record Insert(String table, List<List<Object>> rows) implements ScriptStatement {}

    record Delete(String table, List<Condition> where) implements ScriptStatement {}

    record Update(String table, List<Assignment> set, List<Condition> where)
            implements ScriptStatement {}

    /**
     * @param lock null for a plain select
     */
    record Select(String table, List<Condition> where, RowLock lock, IfLocked ifLocked)
            implements ScriptStatement {}

    /** A column of type int, or of type text. */
    record Column(String name, boolean text) {}

    /** {@code column = value}, or {@code column = column + value} if {@code added}. */
    record Assignment(String column, boolean added, Object value) {}

    /** {@code column % modulus operator value}; no modulus when it is 0. */
    record Condition(String column, int modulus, String operator, int value) {
        /** False for null. */
        public boolean holds(Integer of) {
            if (of == null) {
                return false;
            }
            int compared = Integer.compare(modulus == 0 ? of : of % modulus, value);
            return switch (operator) {
                case "=" -> compared == 0;
                case "<>" -> compared != 0;
                case "<" -> compared < 0;
                case ">" -> compared > 0;
                case "<=" -> compared <= 0;
                case ">=" -> compared >= 0;
                default -> throw new IllegalArgumentException(operator);
            };
        }
    }

    /** From the weakest to the strongest. */
    enum RowLock {
        KEY_SHARE,
        SHARE,
        NO_KEY_UPDATE,
        UPDATE
    }

    /** What a locking select does about a row that it would have to wait for. */
    enum IfLocked {
        WAIT,
        NOWAIT,
        SKIP
    }

    /**
     * @throws IllegalArgumentException that names the statement, if it is none of these
     */
    static ScriptStatement parse(String text) {
        return new StatementParser(text).parse();
    }
}
