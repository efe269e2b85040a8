package org.pgkernel.it.crash;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.DbState;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.testkit.CrashSearch;
import org.pgkernel.testkit.DiskCall;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.testkit.golden.ScriptStatement;
import org.pgkernel.testkit.golden.ThreadedSession;
import org.pgkernel.testkit.verify.HeapVerifier;

/**
 * A workload on a kernel, and the model's on the side, until the crash; then recovery, and what is
 * there is one of the states that may be: every acknowledged synchronous commit is in it, no
 * transaction in part, none that did not commit.
 */
final class MatrixRun implements CrashSearch.Run {
    private static final Logger POOL_LOG = Logger.getLogger("org.pgkernel.bufmgr");

    static {
        // A free space map's page that was torn is zeroed with a warning, as it should be.
        POOL_LOG.setLevel(Level.SEVERE);
    }

    private final List<Step> steps;
    private final MatrixKernel.Settings settings;
    private final Model model = new Model();

    /** States that committed, in order; the crash may find the last ones, too. */
    private final List<Map<String, Model.Table>> history = new ArrayList<>();

    /** The first state that a crash may leave. */
    private int durable;

    /** Files of the tables of that state. */
    private Set<String> files = Set.of();

    /** The redo point when they were looked up. */
    private long redo;

    /**
     * Files that were dropped since, each with the redo point that was in force before and after:
     * as long as it is, redo removes the file. Once a checkpoint has removed it, nobody looks
     * whether its name came back, which may be until the directory is synced.
     */
    private Map<String, Long> goneFiles = Map.of();

    /** Calls of the last recovery that changed something. */
    private long changesOfRecovery;

    /** Whether the first recovery emptied unlogged tables; null before. */
    private Boolean emptied;

    /** What is known now of another run. */
    private MatrixRun(MatrixRun other) {
        steps = List.of();
        settings = other.settings;
        history.addAll(other.history);
        durable = other.durable;
        goneFiles = other.goneFiles;
    }

    MatrixRun(List<Step> preparation, List<Step> steps, MatrixKernel.Settings settings) {
        this.steps = steps;
        this.settings = settings;
        for (Step step : preparation) {
            model.execute(((Step.Statement) step).statement());
        }
        history.add(model.committed());
    }

    @Override
    public void workload(SimulatedDisk disk) {
        MatrixKernel kernel = null;
        try {
            kernel = MatrixKernel.open(disk, settings);
            allIsDurable(kernel, disk);
            for (Step step : steps) {
                run(kernel, disk, step);
            }
            kernel.sql().close();
        } catch (KernelStoppedException e) {
            // A fault of the disk; nothing was acknowledged since.
            disk.crash();
        } finally {
            if (kernel != null) {
                kernel.abandon();
            }
        }
    }

    private void run(MatrixKernel kernel, SimulatedDisk disk, Step step) {
        switch (step) {
            case Step.Statement statement -> statement(kernel, disk, statement.statement());
            case Step.CommitAsynchronously commit -> {
                model.execute(new ScriptStatement.Commit());
                remember();
                kernel.sql().commitAsynchronously();
            }
            case Step.Checkpoint checkpoint -> {
                kernel.checkpoint();
                allIsDurable(kernel, disk);
            }
            case Step.Work work -> kernel.work(work);
            case Step.Reopen reopen -> {
                kernel.reopen();
                allIsDurable(kernel, disk);
            }
        }
    }

    private void statement(MatrixKernel kernel, SimulatedDisk disk, ScriptStatement statement) {
        String expected = model.execute(statement);
        boolean commits = remember();
        try {
            assertEquals(expected, kernel.sql().execute(statement), statement::toString);
        } catch (ThreadedSession.Failure e) {
            throw new AssertionError(statement + ": " + e.getMessage(), e);
        }
        if (commits) {
            allIsDurable(kernel, disk);
        }
    }

    private void allIsDurable(MatrixKernel kernel, SimulatedDisk disk) {
        durable = history.size() - 1;
        Set<String> now = kernel.tableFiles();
        long redoNow = ControlFile.read(disk, settings.data()).checkPointRedo();
        if (redoNow == redo && !now.containsAll(files)) {
            Map<String, Long> gone = new TreeMap<>(goneFiles);
            files.stream()
                    .filter(file -> !now.contains(file))
                    .forEach(file -> gone.put(file, redo));
            goneFiles = gone;
        }
        files = now;
        redo = redoNow;
    }

    @Override
    public CrashSearch.Run ifCrashedNow() {
        return new MatrixRun(this);
    }

    @Override
    public long changesOfRecovery(SimulatedDisk found) {
        return changesOfRecovery;
    }

    /**
     * Keeps the committed state if it is another one.
     *
     * @return false if nothing has changed: such a commit makes nothing durable
     */
    private boolean remember() {
        if (history.getLast().equals(model.committed())) {
            return false;
        }
        history.add(model.committed());
        return true;
    }

    @Override
    public void verify(SimulatedDisk found) {
        String lockFile = settings.data() + "/postmaster.pid";
        byte[] lock = found.content(lockFile);
        if (lock != null && (lock.length == 0 || !Character.isDigit(lock[0]))) {
            // Refused in words, by PostgreSQL, too; whoever knows that no server runs removes it.
            found.unlink(lockFile);
        }
        ControlFile control = ControlFile.read(found, settings.data());
        boolean wasCrash = control.state() != DbState.SHUTDOWNED;
        emptied = emptied == null ? wasCrash : emptied;
        boolean empty = emptied || wasCrash;
        MatrixKernel kernel = MatrixKernel.open(found, settings);
        changesOfRecovery = found.count(DiskCall.CHANGE);
        boolean closed = false;
        try {
            requireOneOfThePossibleStates(read(kernel), empty);
            goOn(kernel);
            // Vacuum also repairs: what it would is seen in the other half.
            if ((found.seed() + history.size()) % 2 == 0) {
                vacuum(kernel, empty);
            }
            kernel.close();
            closed = true;
        } finally {
            if (!closed) {
                kernel.abandon();
            }
        }
        verifyFiles(found, control.checkPointRedo());
    }

    /** Of all tables that were ever there those that are, by name; rows as text. */
    private Map<String, String> read(MatrixKernel kernel) {
        Map<String, String> found = new TreeMap<>();
        for (String table : tables(kernel)) {
            found.put(table, execute(kernel, ScriptStatement.parse("select * from " + table)));
        }
        return found;
    }

    private List<String> tables(MatrixKernel kernel) {
        Set<String> names = new TreeSet<>();
        history.forEach(state -> names.addAll(state.keySet()));
        return names.stream().filter(kernel.sql()::exists).toList();
    }

    private static String execute(MatrixKernel kernel, ScriptStatement statement) {
        try {
            return kernel.sql().execute(statement);
        } catch (ThreadedSession.Failure e) {
            throw new AssertionError(statement + ": " + e.getMessage(), e);
        }
    }

    /**
     * @param empty unlogged tables have to be empty, else whole
     */
    private void requireOneOfThePossibleStates(Map<String, String> found, boolean empty) {
        for (int i = durable; i < history.size(); i++) {
            if (matches(history.get(i), found, empty)) {
                return;
            }
        }
        throw new AssertionError(
                "found "
                        + found
                        + "\nacknowledged "
                        + texts(history.get(durable))
                        + "\nand perhaps "
                        + history.subList(durable + 1, history.size()).stream()
                                .map(MatrixRun::texts)
                                .toList()
                        + (empty ? "\nunlogged tables empty" : ""));
    }

    private static Map<String, String> texts(Map<String, Model.Table> tables) {
        Map<String, String> texts = new TreeMap<>();
        tables.forEach((name, table) -> texts.put(name, table.text()));
        return texts;
    }

    private static boolean matches(
            Map<String, Model.Table> may, Map<String, String> found, boolean empty) {
        return may.keySet().equals(found.keySet())
                && may.entrySet().stream()
                        .allMatch(
                                each -> {
                                    Model.Table table = each.getValue();
                                    return found.get(each.getKey())
                                            .equals(
                                                    table.unlogged() && empty
                                                            ? Model.NO_ROWS
                                                            : table.text());
                                });
    }

    /** The sum, and that work goes on; nothing of this lasts. */
    private void goOn(MatrixKernel kernel) {
        int sum = 0;
        for (String table : new String[] {"account_one", "account_two"}) {
            String rows = execute(kernel, ScriptStatement.parse("select * from " + table));
            for (String row : rows.substring(1, rows.length() - 1).split("\\)\\(")) {
                sum += Integer.parseInt(row.split(",")[1]);
            }
        }
        assertEquals(StepGenerator.SUM, sum, "sum of all balances");
        List<String> tables = tables(kernel);
        execute(kernel, new ScriptStatement.Begin());
        for (String table : tables) {
            List<Object> row = new ArrayList<>(List.of(-1, -1, -1));
            int columns = history.getFirst().containsKey(table) ? columns(table) : 3;
            if (columns == 3) {
                row.set(1, "x".repeat(100));
            }
            execute(kernel, new ScriptStatement.Insert(table, List.of(row.subList(0, columns))));
        }
        execute(kernel, new ScriptStatement.Rollback());
    }

    private void vacuum(MatrixKernel kernel, boolean empty) {
        for (String table : tables(kernel)) {
            execute(kernel, new ScriptStatement.Vacuum(table));
        }
        kernel.checkpoint();
        requireOneOfThePossibleStates(read(kernel), empty);
    }

    private int columns(String table) {
        return history.getFirst().get(table).columns().size();
    }

    private void verifyFiles(SimulatedDisk found, long redoFrom) {
        HeapVerifier verifier = new HeapVerifier(found, settings.data());
        for (String name : found.list(settings.data() + "/base/5")) {
            assertFalse(
                    goneFiles.getOrDefault(name.split("[._]")[0], -1L) == redoFrom,
                    () -> "a file of a relation that was dropped: " + name);
            if (name.matches("\\d+")) {
                verifier.verify("base/5/" + name);
            }
        }
        verifier.requireClean();
    }

    /** A disk with the tables of a preparation, shut down. */
    static SimulatedDisk template(List<Step> preparation, MatrixKernel.Settings settings) {
        SimulatedDisk disk = new SimulatedDisk(0);
        MatrixKernel.create(disk, settings);
        try (MatrixKernel kernel = MatrixKernel.open(disk, settings)) {
            for (Step step : preparation) {
                execute(kernel, ((Step.Statement) step).statement());
            }
        }
        disk.syncAll();
        return disk;
    }

    static CrashSearch search(long seed, int steps) {
        return search(seed, steps, MatrixKernel.Settings.of(seed));
    }

    static CrashSearch search(long seed, int count, MatrixKernel.Settings settings) {
        List<Step> preparation = StepGenerator.preparation(seed);
        List<Step> steps = StepGenerator.workload(seed, count);
        return CrashSearch.of(
                "matrix-" + seed + "-" + count,
                template(preparation, settings),
                () -> new MatrixRun(preparation, steps, settings));
    }
}
