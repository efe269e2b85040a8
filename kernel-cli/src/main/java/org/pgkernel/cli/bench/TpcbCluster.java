package org.pgkernel.cli.bench;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.UnaryOperator;
import org.pgkernel.cluster.Backend;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.cluster.CreateOptions;
import org.pgkernel.cluster.RunOptions;
import org.pgkernel.cluster.Statement;
import org.pgkernel.cluster.Table;
import org.pgkernel.cluster.TableOptions;
import org.pgkernel.cluster.TableScan;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.LockWait;
import org.pgkernel.heap.RowLock;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.SpaceCounters;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.heap.TupleId;
import org.pgkernel.heap.TupleOutcome;

/**
 * pgbench's tables and its TPC-B-like transaction on a cluster of ours. There is no index: where a
 * row is, by its id, is kept in a primitive array, as PostgreSQL's B-tree would tell: the root of
 * its HOT chain.
 *
 * <p>Who moves a row to another page notes the new root before it commits, and the old one beside
 * it: until the commit others find the row there. They look at the new root, then at the old one,
 * and once more if it moved in between.
 */
public final class TpcbCluster implements AutoCloseable {
    /** Clients of one run at most. */
    public static final int MOST_CLIENTS = 128;

    private static final int ACCOUNTS = 100_000;
    private static final int TELLERS = 10;
    private static final int LOAD_BATCH = 500;
    private static final String FILLER = " ".repeat(84);

    private final int scale;
    private final Cluster cluster;
    private final Rows accounts;
    private final Rows tellers;
    private final Rows branches;

    /** Roots of a table's rows by id - 1. */
    private static final class Rows {
        final String name;
        final int balance;
        final AtomicLongArray root;
        final AtomicLongArray before;

        Rows(String name, int balance, int count) {
            this.name = name;
            this.balance = balance;
            root = new AtomicLongArray(count);
            before = new AtomicLongArray(count);
        }
    }

    /** Commits of one client and when it ended. */
    private record Done(long commits, long nanos, SpaceCounters space) {}

    /**
     * Transactions a second, and how the clients' backends found room.
     *
     * @param rows new versions that needed a page, of all tables
     */
    public record Result(double tps, long rows, SpaceCounters space) {}

    /** With PostgreSQL's free space map; every commit waits. */
    public TpcbCluster(Path directory, int scale, int sharedBuffers) {
        this(directory, scale, sharedBuffers, true, UnaryOperator.identity());
    }

    /**
     * @param synchronousCommit whether a commit waits until it is durable
     * @param variant what is special about how the cluster is opened
     */
    public TpcbCluster(
            Path directory,
            int scale,
            int sharedBuffers,
            boolean synchronousCommit,
            UnaryOperator<ClusterOptions> variant) {
        this.scale = scale;
        Cluster.create(directory, CreateOptions.defaults().withChecksums(false));
        RunOptions run =
                RunOptions.defaults()
                        .withSessions(MOST_CLIENTS + 8)
                        .withSynchronousCommit(synchronousCommit)
                        .withCheckpointTimeoutNanos(1800L * 1_000_000_000L)
                        .withWalSize(10L << 30, 1L << 30);
        cluster =
                Cluster.open(
                        directory,
                        variant.apply(
                                ClusterOptions.defaults()
                                        .withSharedBuffers(sharedBuffers)
                                        .withRun(run)));
        accounts = new Rows("accounts", 2, ACCOUNTS * scale);
        tellers = new Rows("tellers", 2, TELLERS * scale);
        branches = new Rows("branches", 1, scale);
        load();
    }

    private void load() {
        try (Backend backend = cluster.newBackend()) {
            backend.begin();
            Attribute filler = Attribute.of("filler", "bpchar");
            backend.createTable(
                    accounts.name,
                    TupleDescriptor.of(
                            Attribute.of("aid", "int4"),
                            Attribute.of("bid", "int4"),
                            Attribute.of("abalance", "int4"),
                            filler),
                    TableOptions.DEFAULT);
            backend.createTable(
                    tellers.name,
                    TupleDescriptor.of(
                            Attribute.of("tid", "int4"),
                            Attribute.of("bid", "int4"),
                            Attribute.of("tbalance", "int4"),
                            filler),
                    TableOptions.DEFAULT);
            backend.createTable(
                    branches.name,
                    TupleDescriptor.of(
                            Attribute.of("bid", "int4"), Attribute.of("bbalance", "int4"), filler),
                    TableOptions.DEFAULT);
            backend.createTable(
                    "history",
                    TupleDescriptor.of(
                            Attribute.of("tid", "int4"),
                            Attribute.of("bid", "int4"),
                            Attribute.of("aid", "int4"),
                            Attribute.of("delta", "int4"),
                            Attribute.of("mtime", "timestamp"),
                            filler),
                    TableOptions.DEFAULT);
            backend.commit();
            load(backend, accounts, ACCOUNTS, true);
            load(backend, tellers, TELLERS, false);
            load(backend, branches, 1, false);
        }
        cluster.checkpoint();
    }

    private void load(Backend backend, Rows rows, int perBranch, boolean filled) {
        Table table = backend.table(rows.name);
        RowValues[] batch = new RowValues[LOAD_BATCH];
        long[] tids = new long[LOAD_BATCH];
        for (int i = 0; i < LOAD_BATCH; i++) {
            batch[i] = table.newRow();
        }
        int total = rows.root.length();
        for (int first = 0; first < total; first += LOAD_BATCH) {
            int count = Math.min(LOAD_BATCH, total - first);
            for (int i = 0; i < count; i++) {
                RowValues row = batch[i];
                int id = first + i;
                row.setNumber(0, id + 1);
                if (rows.balance == 2) {
                    row.setNumber(1, id / perBranch + 1);
                }
                row.setNumber(rows.balance, 0);
                if (filled) {
                    row.setText(rows.balance + 1, FILLER);
                } else {
                    row.setNull(rows.balance + 1);
                }
            }
            backend.begin();
            table.multiInsert(batch, count, tids);
            backend.commit(false);
            for (int i = 0; i < count; i++) {
                rows.root.set(first + i, tids[i]);
                rows.before.set(first + i, tids[i]);
            }
        }
    }

    /** One client: a backend and its tables. */
    private final class Client implements Callable<Done> {
        private final Backend backend = cluster.newBackend();
        private final Table accountTable = backend.table(accounts.name);
        private final Table tellerTable = backend.table(tellers.name);
        private final Table branchTable = backend.table(branches.name);
        private final Table historyTable = backend.table("history");
        private final RowValues account = accountTable.newRow();
        private final RowValues teller = tellerTable.newRow();
        private final RowValues branch = branchTable.newRow();
        private final RowValues history = historyTable.newRow();
        private final SplittableRandom random;
        private final long until;

        Client(long seed, long until) {
            random = new SplittableRandom(seed);
            this.until = until;
        }

        @Override
        public Done call() {
            long commits = 0;
            try (backend) {
                while (System.nanoTime() < until) {
                    transaction();
                    commits++;
                }
            }
            return new Done(commits, System.nanoTime(), backend.spaceCounters());
        }

        private void transaction() {
            int aid = random.nextInt(ACCOUNTS * scale);
            int tid = random.nextInt(TELLERS * scale);
            int bid = random.nextInt(scale);
            int delta = random.nextInt(-5000, 5001);
            backend.begin();
            add(accountTable, accounts, account, aid, delta);
            if (find(accountTable, accounts, account, aid) == TupleId.INVALID) {
                throw new IllegalStateException("the own account is not found: " + (aid + 1));
            }
            add(tellerTable, tellers, teller, tid, delta);
            add(branchTable, branches, branch, bid, delta);
            history.setNumber(0, tid + 1);
            history.setNumber(1, bid + 1);
            history.setNumber(2, aid + 1);
            history.setNumber(3, delta);
            history.setNumber(4, System.currentTimeMillis() * 1000 - 946_684_800_000_000L);
            history.setNull(5);
            historyTable.insert(history);
            backend.commit();
        }

        /** Invalid if the row moved on since the statement's snapshot. */
        private long find(Table table, Rows rows, RowValues row, int id) {
            long tid = table.fetchLatest(rows.root.get(id), row);
            return tid != TupleId.INVALID ? tid : table.fetchLatest(rows.before.get(id), row);
        }

        private void add(Table table, Rows rows, RowValues row, int id, int delta) {
            boolean done = false;
            while (!done) {
                try (Statement statement = backend.statement()) {
                    long tid = find(table, rows, row, id);
                    done = tid != TupleId.INVALID;
                    if (done) {
                        add(table, rows, row, id, tid, delta);
                    }
                }
            }
        }

        /** In one statement: its snapshot keeps the version's place until the newest is found. */
        private void add(Table table, Rows rows, RowValues row, int id, long seen, int delta) {
            long tid = seen;
            row.setNumber(rows.balance, row.number(rows.balance) + delta);
            if (table.update(tid, row) != TupleOutcome.OK) {
                required(
                        rows, id, table.lockLatest(tid, RowLock.NO_KEY_UPDATE, LockWait.WAIT, row));
                tid = table.newTid();
                row.setNumber(rows.balance, row.number(rows.balance) + delta);
                required(rows, id, table.update(tid, row));
            }
            long moved = table.newTid();
            if (TupleId.block(moved) != TupleId.block(tid)) {
                rows.before.set(id, rows.root.get(id));
                rows.root.set(id, moved);
            }
        }

        private static void required(Rows rows, int id, TupleOutcome outcome) {
            if (outcome != TupleOutcome.OK) {
                throw new IllegalStateException(rows.name + " " + (id + 1) + ": " + outcome);
            }
        }
    }

    /**
     * Lets clients run.
     *
     * @return transactions a second
     */
    public double run(int clients, int seconds, long seed) throws InterruptedException {
        return run(clients, seconds * 1_000_000_000L, seed).tps();
    }

    /** The same, with more to tell. */
    public Result run(int clients, long nanos, long seed) throws InterruptedException {
        long began = System.nanoTime();
        List<Client> all = new ArrayList<>();
        for (int i = 0; i < clients; i++) {
            all.add(new Client(seed * 1000 + i, began + nanos));
        }
        long commits = 0;
        SpaceCounters space = new SpaceCounters();
        long ended = began;
        try (ExecutorService pool = Executors.newFixedThreadPool(clients)) {
            for (Future<Done> client : pool.invokeAll(all)) {
                Done done = client.get();
                commits += done.commits();
                space.add(done.space());
                ended = Math.max(ended, done.nanos());
            }
        } catch (ExecutionException e) {
            throw new IllegalStateException("a client failed", e.getCause());
        }
        return new Result(commits * 1e9 / (ended - began), space.rows(), space);
    }

    /**
     * The sums of balances and of history, which are equal if no update was lost.
     *
     * @throws IllegalStateException if they are not
     */
    public void check() {
        try (Backend backend = cluster.newBackend()) {
            backend.begin();
            long[] sums = {
                sum(backend, accounts.name, accounts.balance),
                sum(backend, tellers.name, tellers.balance),
                sum(backend, branches.name, branches.balance),
                sum(backend, "history", 3)
            };
            backend.commit();
            if (Arrays.stream(sums).distinct().count() != 1) {
                throw new IllegalStateException("the sums differ: " + Arrays.toString(sums));
            }
        }
    }

    private static long sum(Backend backend, String name, int column) {
        Table table = backend.table(name);
        RowValues row = table.newRow();
        long sum = 0;
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                scan.read(row);
                sum += (int) row.number(column);
            }
        }
        return sum;
    }

    public void checkpoint() {
        cluster.checkpoint();
    }

    @Override
    public void close() {
        cluster.close();
    }
}
