package org.pgkernel.it.kill;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.cluster.RunOptions;
import org.pgkernel.it.sql.KernelSql;
import org.pgkernel.it.sql.SqlEngine;
import org.pgkernel.testkit.golden.ScriptStatement;
import org.pgkernel.testkit.golden.ScriptStatement.Assignment;
import org.pgkernel.testkit.golden.ScriptStatement.Condition;
import org.pgkernel.testkit.golden.ScriptStatement.Insert;
import org.pgkernel.testkit.golden.ScriptStatement.Update;
import org.pgkernel.testkit.golden.ThreadedSession;

/**
 * A process that opens a cluster and commits until it is killed. Of each commit that was
 * acknowledged it writes a line, thread and number, to its output. The first thread's commits are
 * asynchronous; it acknowledges nothing.
 */
final class CommittingChild {
    static final int THREADS = 4;
    static final int ACCOUNTS = 20;
    static final int BALANCE = 1_000;

    /** Journal rows of a thread that stay; older ones are deleted. */
    static final int KEPT = 40;

    /** Lines before the first acknowledgement: recovery begins; it is over. */
    static final String OPENING = "opening";

    static final String READY = "ready";

    private final FileOutputStream out = new FileOutputStream(FileDescriptor.out);

    private CommittingChild() {}

    static ClusterOptions options() {
        return ClusterOptions.defaults()
                .withSharedBuffers(128)
                .withRun(
                        RunOptions.defaults()
                                .withSessions(THREADS + 4)
                                .withWalBuffers(1 << 18)
                                .withWalSize(4L << 20, 2L << 20)
                                .withWalWriterDelayNanos(TimeUnit.MILLISECONDS.toNanos(20))
                                .withCheckpointTimeoutNanos(TimeUnit.MILLISECONDS.toNanos(300))
                                .withDeadlockTimeoutNanos(TimeUnit.MILLISECONDS.toNanos(50)));
    }

    /**
     * @param args data directory, seed, and for each thread the last number that must be there
     */
    public static void main(String[] args) throws Exception {
        CommittingChild child = new CommittingChild();
        child.write(OPENING + "\n");
        Cluster cluster = Cluster.open(Path.of(args[0]), options());
        child.write(READY + "\n");
        long seed = Long.parseLong(args[1]);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            int thread = i;
            int first = newest(cluster, thread, Integer.parseInt(args[2 + i])) + 1;
            threads.add(
                    Thread.ofPlatform()
                            .start(() -> child.run(cluster, thread, first, seed + thread)));
        }
        // Whoever started this kills it; should he be gone, it ends by itself.
        while (System.in.read() >= 0) {
            // nothing is expected
        }
        Runtime.getRuntime().halt(1);
    }

    /** The newest number of a thread, as recovered. */
    private static int newest(Cluster cluster, int thread, int acknowledged)
            throws ThreadedSession.Failure {
        int newest = 0;
        try (SqlEngine sql = new KernelSql(cluster)) {
            String rows =
                    sql.execute(
                            ScriptStatement.parse(
                                    "select * from journal where thread = " + thread));
            for (String row : rows.substring(1, rows.length() - 1).split("\\)\\(")) {
                newest = Math.max(newest, Integer.parseInt(row.split(",")[1]));
            }
        }
        if (newest < acknowledged) {
            throw new IllegalStateException(
                    "thread " + thread + ": acknowledged " + acknowledged + ", found " + newest);
        }
        return newest;
    }

    private void run(Cluster cluster, int thread, int first, long seed) {
        try (SqlEngine sql = new KernelSql(cluster)) {
            Random random = new Random(seed);
            for (int n = first; ; n++) {
                if (transact(sql, thread, n, random)) {
                    write(thread + " " + n + "\n");
                } else {
                    n--;
                }
                if (thread == 1 && n % 50 == 0) {
                    sql.execute(new ScriptStatement.Vacuum("journal"));
                    sql.execute(new ScriptStatement.Vacuum("account"));
                    sql.execute(new ScriptStatement.Vacuum("note"));
                }
            }
        } catch (Throwable e) {
            // Killing closes nothing in order: this is an error of the kernel.
            e.printStackTrace();
            Runtime.getRuntime().halt(3);
        }
    }

    /**
     * @return false if the transaction failed, against another one
     */
    private boolean transact(SqlEngine sql, int thread, int n, Random random) {
        try {
            sql.execute(new ScriptStatement.Begin());
            sql.execute(new Insert("journal", List.of(List.of(thread, n))));
            int from = random.nextInt(ACCOUNTS);
            int to = random.nextInt(ACCOUNTS);
            int amount = random.nextInt(100);
            add(sql, from, -amount);
            if (random.nextInt(4) == 0) {
                sql.execute(new ScriptStatement.Savepoint("s"));
                add(sql, to, 77);
                sql.execute(new ScriptStatement.RollbackTo("s"));
            }
            add(sql, to, amount);
            sql.execute(
                    new ScriptStatement.Delete(
                            "journal",
                            List.of(is("thread", thread), new Condition("n", 0, "<", n - KEPT))));
            note(sql, thread, n, random);
            if (thread == 0) {
                sql.commitAsynchronously();
                return true;
            }
            sql.execute(new ScriptStatement.Commit());
            return true;
        } catch (ThreadedSession.Failure e) {
            try {
                sql.execute(new ScriptStatement.Rollback());
            } catch (ThreadedSession.Failure again) {
                throw new IllegalStateException(again);
            }
            return false;
        }
    }

    /** Each thread has one note, as long as its number tells. */
    private static void note(SqlEngine sql, int thread, int n, Random random)
            throws ThreadedSession.Failure {
        String text = text(thread, n);
        if (random.nextBoolean()) {
            sql.execute(
                    new Update(
                            "note",
                            List.of(
                                    new Assignment("n", false, n),
                                    new Assignment("text", false, text)),
                            List.of(is("thread", thread))));
        } else {
            sql.execute(new ScriptStatement.Delete("note", List.of(is("thread", thread))));
            sql.execute(new Insert("note", List.of(List.of(thread, n, text))));
        }
    }

    static String text(int thread, int n) {
        Random random = new Random(31L * n + thread);
        int length = n % 7 == 0 ? 9_000 : n % 3 == 0 ? 1_500 : 40;
        StringBuilder text = new StringBuilder();
        while (text.length() < length) {
            text.append((char) (' ' + random.nextInt(90)));
        }
        return text.toString();
    }

    private static void add(SqlEngine sql, int id, int amount) throws ThreadedSession.Failure {
        sql.execute(
                new Update(
                        "account",
                        List.of(new Assignment("balance", true, amount)),
                        List.of(is("id", id))));
    }

    private static Condition is(String column, int value) {
        return new Condition(column, 0, "=", value);
    }

    /** One write for a line: a line is there as a whole or not at all. */
    private void write(String line) throws IOException {
        out.write(line.getBytes(StandardCharsets.US_ASCII));
    }
}
