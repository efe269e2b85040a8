package org.pgkernel.it.kill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.CreateOptions;
import org.pgkernel.it.sql.KernelSql;
import org.pgkernel.it.sql.SqlEngine;
import org.pgkernel.testkit.golden.ScriptStatement;
import org.pgkernel.testkit.golden.ThreadedSession;
import org.pgkernel.testkit.verify.HeapVerifier;

/**
 * A cluster on a real disk, with real syncs, whose process is killed again and again while it
 * commits. After each kill it is recovered here and looked at: no acknowledged commit is lost, no
 * transaction is there in part.
 */
final class SigkillRounds {
    private static final int MOST_LINES = 400;
    private static final long LONGEST_MOMENT = TimeUnit.MILLISECONDS.toNanos(5);
    private static final String DATABASE = "base/5";

    private final Path data;
    private final Random random;

    /** By thread: the last number that was acknowledged, or that was found. */
    private final int[] last = new int[CommittingChild.THREADS];

    private long acknowledgedInAll;

    SigkillRounds(Path data, long seed) {
        this.data = data;
        this.random = new Random(seed);
    }

    private long records;
    private int recoveriesKilled;

    /** How long recovery took the last time, nanoseconds. */
    private long recoveryNanos = TimeUnit.MILLISECONDS.toNanos(100);

    String told() {
        return acknowledgedInAll
                + " commits acknowledged and found, "
                + recoveriesKilled
                + " recoveries killed, "
                + records
                + " records replayed";
    }

    long acknowledgedInAll() {
        return acknowledgedInAll;
    }

    void create() throws ThreadedSession.Failure {
        Cluster.create(data, CreateOptions.defaults().withWalSegmentSize(1 << 20));
        try (Cluster cluster = Cluster.open(data, CommittingChild.options());
                SqlEngine sql = new KernelSql(cluster)) {
            execute(sql, "create table account (id int, balance int) with (fillfactor = 50)");
            execute(sql, "create table journal (thread int, n int)");
            execute(sql, "create table note (thread int, n int, text text)");
            for (int i = 0; i < CommittingChild.ACCOUNTS; i++) {
                execute(
                        sql,
                        "insert into account values (" + i + ", " + CommittingChild.BALANCE + ")");
            }
            for (int i = 0; i < CommittingChild.THREADS; i++) {
                execute(sql, "insert into journal values (" + i + ", 0)");
                sql.execute(
                        new ScriptStatement.Insert(
                                "note", List.of(List.of(i, 0, CommittingChild.text(i, 0)))));
            }
        }
    }

    /**
     * A life of the child and its death; perhaps others, which end while what the one before left
     * is recovered; then what is there.
     */
    void round(int number) throws Exception {
        live(5 + random.nextInt(MOST_LINES), Long.MAX_VALUE);
        while (random.nextBoolean()) {
            live(Integer.MAX_VALUE, random.nextLong(2 * recoveryNanos));
        }
        String what = "round " + number + ", seed as printed";
        long start = System.nanoTime();
        try (Cluster cluster = Cluster.open(data, CommittingChild.options());
                SqlEngine sql = new KernelSql(cluster)) {
            recoveryNanos = System.nanoTime() - start;
            records += cluster.report().records();
            verifyRows(sql, what);
            // What no redo has touched is looked at in files, too.
            execute(sql, "vacuum journal");
        }
        verifyFiles();
    }

    /**
     * @param lines after so many lines, and a moment, it is killed
     * @param nanos or so long after it has begun to recover
     */
    private void live(int lines, long nanos) throws IOException, InterruptedException {
        Process child = start();
        boolean ready = false;
        int seen = 0;
        try (BufferedReader reader =
                new BufferedReader(
                        new InputStreamReader(child.getInputStream(), StandardCharsets.US_ASCII))) {
            // What it wrote before it was killed is still read after.
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                if (line.equals(CommittingChild.READY)) {
                    ready = true;
                } else if (!line.equals(CommittingChild.OPENING)) {
                    acknowledged(line);
                } else if (nanos != Long.MAX_VALUE) {
                    LockSupport.parkNanos(nanos);
                    kill(child);
                }
                if (++seen == lines) {
                    LockSupport.parkNanos(random.nextLong(LONGEST_MOMENT));
                    kill(child);
                }
            }
        } finally {
            kill(child);
        }
        assertEquals(128 + 9, child.waitFor(), "the child ended by itself, for what it said");
        recoveriesKilled += ready ? 0 : 1;
    }

    /** Not by the process itself, which would close what is still to be read. */
    private static void kill(Process child) {
        child.toHandle().destroyForcibly();
    }

    /** The first thread's commits are asynchronous: they may be lost. */
    private void acknowledged(String line) {
        String[] words = line.split(" ");
        int thread = Integer.parseInt(words[0]);
        int n = Integer.parseInt(words[1]);
        if (thread != 0) {
            assertTrue(n > last[thread], "out of order: " + line);
            last[thread] = n;
            acknowledgedInAll++;
        }
    }

    private Process start() throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of(
                        "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
                        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
                        "--enable-native-access=ALL-UNNAMED",
                        "--sun-misc-unsafe-memory-access=allow",
                        "-XX:+UseSerialGC",
                        "-XX:TieredStopAtLevel=1",
                        "-ea",
                        "-cp",
                        System.getProperty("java.class.path"),
                        CommittingChild.class.getName(),
                        data.toString(),
                        Long.toString(random.nextLong())));
        for (int n : last) {
            command.add(Integer.toString(n));
        }
        return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    private void verifyRows(SqlEngine sql, String what) throws ThreadedSession.Failure {
        long sum = 0;
        List<int[]> accounts = numbers(execute(sql, "select * from account"), 2);
        for (int[] row : accounts) {
            sum += row[1];
        }
        assertEquals(CommittingChild.ACCOUNTS, accounts.size(), what);
        assertEquals(
                (long) CommittingChild.ACCOUNTS * CommittingChild.BALANCE,
                sum,
                what + ": sum of balances");
        List<int[]> journal = numbers(execute(sql, "select * from journal"), 2);
        for (int thread = 0; thread < last.length; thread++) {
            int of = thread;
            List<Integer> found =
                    journal.stream()
                            .filter(row -> row[0] == of)
                            .map(row -> row[1])
                            .sorted()
                            .toList();
            int newest = found.getLast();
            String where = what + ", thread " + thread;
            assertTrue(
                    newest >= last[thread],
                    where + ": acknowledged " + last[thread] + ", found " + newest);
            int oldest = Math.max(0, newest - CommittingChild.KEPT);
            assertEquals(
                    Stream.iterate(oldest, n -> n <= newest, n -> n + 1).toList(), found, where);
            assertEquals(
                    KernelSql.rows(thread, newest, CommittingChild.text(thread, newest)),
                    execute(sql, "select * from note where thread = " + thread),
                    where);
            last[thread] = newest;
        }
    }

    private static List<int[]> numbers(String rows, int columns) {
        List<int[]> numbers = new ArrayList<>();
        for (String row : rows.substring(1, rows.length() - 1).split("\\)\\(")) {
            String[] values = row.split(",");
            assertEquals(columns, values.length, rows);
            numbers.add(Stream.of(values).mapToInt(Integer::parseInt).toArray());
        }
        return numbers;
    }

    private void verifyFiles() {
        PosixDisk disk = new PosixDisk();
        HeapVerifier verifier = new HeapVerifier(disk, data.toString());
        for (String name : disk.list(data.resolve(DATABASE).toString())) {
            if (name.matches("\\d+")) {
                verifier.verify(DATABASE + "/" + name);
            }
        }
        verifier.requireClean();
    }

    private static String execute(SqlEngine sql, String statement) throws ThreadedSession.Failure {
        return sql.execute(ScriptStatement.parse(statement));
    }
}
