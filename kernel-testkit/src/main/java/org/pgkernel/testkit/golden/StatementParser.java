package org.pgkernel.testkit.golden;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.pgkernel.testkit.golden.ScriptStatement.Assignment;
import org.pgkernel.testkit.golden.ScriptStatement.Column;
import org.pgkernel.testkit.golden.ScriptStatement.Condition;
import org.pgkernel.testkit.golden.ScriptStatement.IfLocked;
import org.pgkernel.testkit.golden.ScriptStatement.RowLock;

/** Reads one statement, word by word. */
final class StatementParser {
    private static final Pattern WORD = Pattern.compile("-?\\d+|'[^']*'|\\w+|<>|<=|>=|[^\\s\\w]");

    private final String text;
    private final List<String> words = new ArrayList<>();
    private int at;

    StatementParser(String text) {
        this.text = text;
        for (Matcher matcher = WORD.matcher(text); matcher.find(); ) {
            words.add(matcher.group());
        }
    }

    ScriptStatement parse() {
        ScriptStatement statement =
                switch (next()) {
                    case "begin" -> new ScriptStatement.Begin();
                    case "commit" -> new ScriptStatement.Commit();
                    case "rollback" ->
                            accept("to")
                                    ? new ScriptStatement.RollbackTo(next())
                                    : new ScriptStatement.Rollback();
                    case "savepoint" -> new ScriptStatement.Savepoint(next());
                    case "release" -> new ScriptStatement.Release(next());
                    case "create" -> createTable();
                    case "drop" -> new ScriptStatement.DropTable(expect("table").next());
                    case "truncate" -> new ScriptStatement.Truncate(next());
                    case "vacuum" -> new ScriptStatement.Vacuum(next());
                    case "insert" -> insert();
                    case "delete" ->
                            new ScriptStatement.Delete(expect("from").next(), conditions());
                    case "update" -> update();
                    case "select" -> select();
                    default -> throw wrong();
                };
        if (at < words.size()) {
            throw wrong();
        }
        return statement;
    }

    private ScriptStatement createTable() {
        boolean unlogged = accept("unlogged");
        String table = expect("table").next();
        List<Column> columns = new ArrayList<>();
        List<Integer> key = new ArrayList<>();
        expect("(");
        do {
            String name = next();
            boolean isText = accept("text");
            if (!isText) {
                expect("int");
            }
            if (accept("primary")) {
                expect("key");
                key.add(columns.size());
            }
            columns.add(new Column(name, isText));
        } while (accept(","));
        expect(")");
        int fillfactor = 100;
        if (accept("with")) {
            fillfactor = expect("(").expect("fillfactor").expect("=").number();
            expect(")");
        }
        return new ScriptStatement.CreateTable(
                table, List.copyOf(columns), List.copyOf(key), fillfactor, unlogged);
    }

    private ScriptStatement insert() {
        String table = expect("into").next();
        expect("values");
        List<List<Object>> rows = new ArrayList<>();
        do {
            expect("(");
            List<Object> row = new ArrayList<>();
            do {
                row.add(value());
            } while (accept(","));
            expect(")");
            rows.add(row);
        } while (accept(","));
        return new ScriptStatement.Insert(table, rows);
    }

    private ScriptStatement update() {
        String table = next();
        expect("set");
        List<Assignment> set = new ArrayList<>();
        do {
            String column = next();
            expect("=");
            if (accept(column)) {
                expect("+");
                set.add(new Assignment(column, true, number()));
            } else {
                set.add(new Assignment(column, false, value()));
            }
        } while (accept(","));
        return new ScriptStatement.Update(table, set, conditions());
    }

    private ScriptStatement select() {
        String table = expect("*").expect("from").next();
        List<Condition> where = conditions();
        RowLock lock = null;
        IfLocked ifLocked = IfLocked.WAIT;
        if (accept("for")) {
            lock = rowLock();
            if (accept("nowait")) {
                ifLocked = IfLocked.NOWAIT;
            } else if (accept("skip")) {
                expect("locked");
                ifLocked = IfLocked.SKIP;
            }
        }
        return new ScriptStatement.Select(table, where, lock, ifLocked);
    }

    private RowLock rowLock() {
        if (accept("no")) {
            expect("key").expect("update");
            return RowLock.NO_KEY_UPDATE;
        }
        if (accept("key")) {
            expect("share");
            return RowLock.KEY_SHARE;
        }
        if (accept("share")) {
            return RowLock.SHARE;
        }
        expect("update");
        return RowLock.UPDATE;
    }

    private List<Condition> conditions() {
        List<Condition> conditions = new ArrayList<>();
        if (accept("where")) {
            do {
                String column = next();
                int modulus = accept("%") ? number() : 0;
                String operator = next();
                if (!List.of("=", "<>", "<", ">", "<=", ">=").contains(operator)) {
                    throw wrong();
                }
                conditions.add(new Condition(column, modulus, operator, number()));
            } while (accept("and"));
        }
        return conditions;
    }

    private Object value() {
        if (accept("null")) {
            return null;
        }
        if (accept("repeat")) {
            String part = string(expect("(").next());
            int times = expect(",").number();
            expect(")");
            return part.repeat(times);
        }
        String word = next();
        if (word.startsWith("'")) {
            return string(word);
        }
        at--;
        return number();
    }

    private static String string(String word) {
        return word.substring(1, word.length() - 1);
    }

    private int number() {
        String word = next();
        try {
            return Integer.parseInt(word);
        } catch (NumberFormatException e) {
            throw wrong();
        }
    }

    private String next() {
        if (at == words.size()) {
            throw wrong();
        }
        return words.get(at++);
    }

    private boolean accept(String word) {
        boolean there = at < words.size() && words.get(at).equals(word);
        if (there) {
            at++;
        }
        return there;
    }

    private StatementParser expect(String word) {
        if (!accept(word)) {
            throw wrong();
        }
        return this;
    }

    private IllegalArgumentException wrong() {
        return new IllegalArgumentException(
                "not a statement of golden scripts, at word " + (at + 1) + ": " + text);
    }
}
