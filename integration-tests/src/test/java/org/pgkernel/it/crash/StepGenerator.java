package org.pgkernel.it.crash;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.pgkernel.testkit.golden.ScriptStatement;
import org.pgkernel.testkit.golden.ScriptStatement.Assignment;
import org.pgkernel.testkit.golden.ScriptStatement.Column;
import org.pgkernel.testkit.golden.ScriptStatement.Condition;
import org.pgkernel.testkit.golden.ScriptStatement.CreateTable;
import org.pgkernel.testkit.golden.ScriptStatement.Delete;
import org.pgkernel.testkit.golden.ScriptStatement.DropTable;
import org.pgkernel.testkit.golden.ScriptStatement.IfLocked;
import org.pgkernel.testkit.golden.ScriptStatement.Insert;
import org.pgkernel.testkit.golden.ScriptStatement.RowLock;
import org.pgkernel.testkit.golden.ScriptStatement.Select;
import org.pgkernel.testkit.golden.ScriptStatement.Update;

/**
 * Workloads of a bank: money moves between accounts of two tables, accounts come and go, notes of
 * all lengths are kept, a history grows and is thrown away, tables are made, emptied and dropped,
 * with savepoints, rollbacks, vacuum and checkpoints in between. The sum of all balances is {@link
 * #SUM} whenever nobody is in the middle of a transaction. The seed decides everything.
 */
final class StepGenerator {
    static final int SUM = 3_000;

    private static final String ONE = "account_one";
    private static final String TWO = "account_two";
    private static final String NOTES = "notes";
    private static final String HISTORY = "history";
    private static final String SCRATCH = "scratch";
    private static final int ACCOUNTS = 15;
    private static final int[] LENGTHS = {0, 5, 100, 120, 1_000, 2_500, 9_000};

    private final Random random;
    private final Model model = new Model();
    private final List<Step> steps = new ArrayList<>();
    private int number;

    private StepGenerator(long seed) {
        random = new Random(seed);
    }

    /** Makes and fills the tables. */
    static List<Step> preparation(long seed) {
        StepGenerator generator = new StepGenerator(seed);
        generator.prepare();
        return generator.steps;
    }

    /** A workload over what {@link #preparation} of the same seed left. */
    static List<Step> workload(long seed, int count) {
        StepGenerator generator = new StepGenerator(seed);
        generator.prepare();
        generator.steps.clear();
        while (generator.steps.size() < count) {
            generator.next();
        }
        return generator.steps;
    }

    private void prepare() {
        for (String table : new String[] {ONE, TWO}) {
            run(
                    new CreateTable(
                            table,
                            List.of(column("id"), column("balance")),
                            List.of(),
                            table.equals(ONE) ? 100 : 40,
                            false));
            List<List<Object>> rows = new ArrayList<>();
            for (int i = 0; i < ACCOUNTS; i++) {
                rows.add(List.of(i, SUM / 2 / ACCOUNTS));
            }
            run(new Insert(table, rows));
        }
        createNotes(NOTES, false);
        createNotes("unlogged_notes", true);
        run(
                new CreateTable(
                        HISTORY, List.of(column("id"), column("amount")), List.of(), 100, false));
        for (int i = 0; i < 6; i++) {
            run(new Insert(NOTES, List.of(note())));
            run(new Insert("unlogged_notes", List.of(note())));
        }
    }

    private void createNotes(String table, boolean unlogged) {
        run(
                new CreateTable(
                        table,
                        List.of(column("id"), new Column("note", true), column("n")),
                        List.of(),
                        100,
                        unlogged));
    }

    private static Column column(String name) {
        return new Column(name, false);
    }

    private void run(ScriptStatement statement) {
        model.execute(statement);
        steps.add(new Step.Statement(statement));
    }

    private void next() {
        if (!model.inTransaction()) {
            outside();
        } else {
            inside();
        }
    }

    private void outside() {
        switch (random.nextInt(17)) {
            case 0 -> steps.add(new Step.Checkpoint());
            case 1, 2 -> steps.add(new Step.Work(1 + random.nextInt(6), 50_000_000));
            case 3, 4 -> run(new ScriptStatement.Vacuum(anyTable()));
            case 5 -> {
                if (random.nextInt(4) == 0) {
                    steps.add(new Step.Reopen());
                }
            }
            case 6 -> note(false);
            case 7 -> run(new Select(anyTable(), List.of(), null, IfLocked.WAIT));
            case 8 -> empty();
            default -> run(new ScriptStatement.Begin());
        }
    }

    /** Vacuum cuts the table off, what comes next makes it longer again. */
    private void empty() {
        String table = random.nextBoolean() ? HISTORY : NOTES;
        run(new Delete(table, List.of(below(number))));
        run(new ScriptStatement.Vacuum(table));
        if (table.equals(HISTORY)) {
            history();
        } else {
            run(new Insert(NOTES, List.of(note(), note())));
        }
    }

    private void inside() {
        switch (random.nextInt(26)) {
            case 0, 1, 2, 3 -> run(new ScriptStatement.Commit());
            case 4 -> {
                model.execute(new ScriptStatement.Commit());
                steps.add(new Step.CommitAsynchronously());
            }
            case 5 -> run(new ScriptStatement.Rollback());
            case 6, 7 -> run(new ScriptStatement.Savepoint("s" + model.savepoints()));
            case 8, 9 -> endSavepoint();
            case 10, 11, 12, 13 -> transfer();
            case 14 -> closeAccount();
            case 15 -> run(new Insert(random.nextBoolean() ? ONE : TWO, List.of(account())));
            case 16, 17 -> history();
            case 18 -> run(new Delete(HISTORY, List.of(below(number - random.nextInt(90)))));
            case 19 -> scratch();
            case 20 -> truncate();
            case 21 ->
                    run(
                            new Select(
                                    random.nextBoolean() ? ONE : TWO,
                                    List.of(new Condition("id", 3, "=", random.nextInt(3))),
                                    RowLock.values()[random.nextInt(4)],
                                    IfLocked.WAIT));
            case 22 -> steps.add(new Step.Work(1, 50_000_000));
            case 23 -> note(true);
            default -> note(false);
        }
    }

    private void endSavepoint() {
        if (model.savepoints() > 0) {
            String name = "s" + random.nextInt(model.savepoints());
            run(
                    random.nextBoolean()
                            ? new ScriptStatement.RollbackTo(name)
                            : new ScriptStatement.Release(name));
        }
    }

    private List<Object> account() {
        return List.of(ACCOUNTS + number++, 0);
    }

    private void transfer() {
        int amount = 1 + random.nextInt(50);
        String from = random.nextBoolean() ? ONE : TWO;
        String to = random.nextBoolean() ? ONE : TWO;
        Integer payer = anyId(from);
        Integer payee = anyId(to);
        if (payer != null && payee != null) {
            add(from, payer, -amount);
            add(to, payee, amount);
        }
    }

    private void add(String table, int id, int amount) {
        run(
                new Update(
                        table,
                        List.of(new Assignment("balance", true, amount)),
                        List.of(new Condition("id", 0, "=", id))));
    }

    private Integer anyId(String table) {
        List<List<Object>> rows = model.tables().get(table).rows();
        return rows.isEmpty() ? null : (Integer) rows.get(random.nextInt(rows.size())).get(0);
    }

    /** What is left goes to the first account of the other table. */
    private void closeAccount() {
        String table = random.nextBoolean() ? ONE : TWO;
        String other = table.equals(ONE) ? TWO : ONE;
        Integer id = anyId(table);
        Integer heir = anyId(other);
        if (id == null || heir == null || model.tables().get(table).rows().size() < 3) {
            return;
        }
        int balance =
                model.tables().get(table).rows().stream()
                        .filter(row -> row.get(0).equals(id))
                        .mapToInt(row -> (Integer) row.get(1))
                        .sum();
        add(other, heir, balance);
        run(new Delete(table, List.of(new Condition("id", 0, "=", id))));
    }

    private void history() {
        List<List<Object>> rows = new ArrayList<>();
        int count = random.nextInt(3) == 0 ? 60 : 3;
        for (int i = 0; i < count; i++) {
            rows.add(List.of(number++, random.nextInt(100)));
        }
        run(new Insert(HISTORY, rows));
    }

    private static Condition below(int id) {
        return new Condition("id", 0, "<", id);
    }

    private void scratch() {
        if (!model.tables().containsKey(SCRATCH)) {
            createNotes(SCRATCH, random.nextInt(4) == 0);
            run(new Insert(SCRATCH, List.of(note(), note())));
        } else if (random.nextBoolean()) {
            run(new DropTable(SCRATCH));
        } else {
            run(new ScriptStatement.Truncate(SCRATCH));
        }
    }

    private void truncate() {
        run(new ScriptStatement.Truncate(random.nextInt(3) == 0 ? NOTES : HISTORY));
    }

    private void note(boolean delete) {
        String table = random.nextInt(4) == 0 ? "unlogged_notes" : NOTES;
        Integer id = anyId(table);
        int kind = random.nextInt(3);
        if (id == null || !delete && kind == 0) {
            run(new Insert(table, List.of(note(), note())));
        } else if (delete) {
            run(new Delete(table, List.of(below(id))));
        } else {
            Assignment set =
                    kind == 1
                            ? new Assignment("note", false, text())
                            : new Assignment("n", true, 1);
            run(new Update(table, List.of(set), List.of(new Condition("id", 0, "=", id))));
        }
    }

    private List<Object> note() {
        List<Object> row = new ArrayList<>();
        row.add(number++);
        row.add(random.nextInt(8) == 0 ? null : text());
        row.add(random.nextInt(10));
        return row;
    }

    /** Letters that a compressor can do something with, or not. */
    private String text() {
        int length = LENGTHS[random.nextInt(LENGTHS.length)];
        int letters = random.nextBoolean() ? 3 : 60;
        StringBuilder text = new StringBuilder(length);
        for (int i = 0; i < length; i++) {
            text.append((char) ('A' + random.nextInt(letters)));
        }
        return text.toString();
    }

    private String anyTable() {
        List<String> names = List.copyOf(model.committed().keySet());
        return names.get(random.nextInt(names.size()));
    }
}
