package org.pgkernel.fsm;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.IntFunction;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.recovery.CheckpointDelay;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.testkit.SimulatedDisk;

/**
 * Inserts of a few backends into a few relations as TargetPage of kernel-heap makes them, beside a
 * model that knows how much room each page really has, what was reported of it, and what the policy
 * says: which pages may be tried, when the heap may grow, when there is a fork.
 */
final class PolicyHistory implements AutoCloseable {
    private static final int MOST_BLOCKS = 12;
    private static final int UNKNOWN = -1;

    /** A relation and what is to be known of it. */
    private static final class Table {
        final SmgrRelation relation;
        int blocks;

        /** Bytes a page really has. */
        final int[] free = new int[MOST_BLOCKS + 1];

        /** Category that was last reported, or {@link #UNKNOWN}. */
        final int[] seen = new int[MOST_BLOCKS + 1];

        /** Category that the fork has. */
        final int[] mapped = new int[MOST_BLOCKS + 1];

        /** The fork may name the page for what it held before a crash. */
        final boolean[] stale = new boolean[MOST_BLOCKS + 1];

        boolean hasFork;

        Table(SmgrRelation relation) {
            this.relation = relation;
            Arrays.fill(seen, UNKNOWN);
        }
    }

    private static final class Worker {
        FreeSpace space;
        final int[] targets = {BlockNumber.INVALID, BlockNumber.INVALID};
    }

    private final Random random;
    private final FsmOptions options;
    private final boolean keepsHint;
    private final PrimaryFixture f;
    private final Table[] tables;
    private final Worker[] workers = {new Worker(), new Worker(), new Worker()};
    private final RelationTruncation truncation;
    private Worker one;

    /**
     * @param spaces makes the one of a backend, by number
     * @param keepsHint a fault: what is shared survives a truncation
     */
    PolicyHistory(long seed, FsmOptions options, IntFunction<FreeSpace> spaces, boolean keepsHint) {
        random = new Random(seed);
        this.options = options;
        this.keepsHint = keepsHint;
        SizePolicy sizes = random.nextBoolean() ? SizePolicy.SHARED : SizePolicy.RECOVERY_ONLY;
        f = new PrimaryFixture(false, sizes, new SimulatedDisk(seed));
        tables = new Table[] {new Table(f.relation), new Table(f.relation(8))};
        truncation = new RelationTruncation(f.wal, new CheckpointDelay());
        for (int i = 0; i < workers.length; i++) {
            workers[i].space = spaces.apply(i);
        }
    }

    /** Fails by an AssertionError that says what is wrong. */
    void run(int steps) {
        for (int i = 0; i < steps; i++) {
            one = workers[random.nextInt(workers.length)];
            int number = random.nextInt(tables.length);
            Table table = tables[number];
            switch (random.nextInt(20)) {
                case 0, 1 -> delete(table);
                case 2, 3 -> vacuum(table);
                case 4 -> {
                    if (table.blocks > 0 && random.nextBoolean()) {
                        truncate(table, random.nextInt(table.blocks + 1));
                    }
                }
                case 5 -> {
                    if (table.blocks > 0 && random.nextInt(4) == 0) {
                        crash(table, random.nextInt(table.blocks + 1));
                    }
                }
                default -> insert(table, number, wanted());
            }
            check(
                    table.relation.exists(ForkNumber.FSM) == table.hasFork,
                    "a map of " + table.blocks + " blocks: " + !table.hasFork);
        }
    }

    private int wanted() {
        return switch (random.nextInt(8)) {
            case 0 -> FreeSpaceMap.MAX_REQUEST - random.nextInt(40);
            case 1 -> 4000 + random.nextInt(4000);
            default -> 500 + random.nextInt(3000);
        };
    }

    private void insert(Table table, int number, int wanted) {
        int target = one.targets[number];
        if (target != BlockNumber.INVALID && target >= table.blocks) {
            target = BlockNumber.INVALID;
        }
        List<Integer> tried = new ArrayList<>();
        int block = target;
        if (block == BlockNumber.INVALID) {
            block = one.space.firstPage(buffers(), table.relation, table.blocks, wanted);
            checkAnswer(table, block, tried, wanted, true);
        }
        while (block != BlockNumber.INVALID) {
            tried.add(block);
            if (table.free[block] >= wanted) {
                table.free[block] -= wanted;
                one.targets[number] = block;
                one.space.forget();
                return;
            }
            if (random.nextInt(12) == 0) {
                one.space.forget(); // the transaction is aborted
                return;
            }
            int free = table.free[block];
            int next = one.space.recordAndFind(buffers(), table.relation, block, free, wanted);
            reported(table, block, free, wanted);
            block = next;
            checkAnswer(table, block, tried, wanted, false);
        }
        checkMayGrow(table, tried, wanted);
        if (table.blocks == MOST_BLOCKS) {
            one.space.forget();
            return;
        }
        one.space.forget();
        table.free[table.blocks] = FreeSpaceMap.MAX_REQUEST - wanted;
        table.seen[table.blocks] = UNKNOWN;
        one.targets[number] = table.blocks;
        f.heapBlocks(table.relation, ++table.blocks);
    }

    private PageBuffers buffers() {
        return f.backend;
    }

    private boolean isSmall(Table table) {
        return table.blocks <= options.creationThreshold();
    }

    /** What the policy does with a report, in the model. */
    private void reported(Table table, int block, int free, int wanted) {
        int category = FreeSpaceMap.category(free);
        if (block >= options.creationThreshold() || !isSmall(table) || table.hasFork) {
            carry(table);
            table.hasFork = true;
            table.mapped[block] = category;
            table.stale[block] = false;
        }
        if (block < options.creationThreshold()) {
            int known = Math.min(category, 254);
            table.seen[block] = free < wanted ? Math.min(known, needed(wanted) - 1) : known;
            if (!isSmall(table)) {
                table.seen[block] = UNKNOWN;
            }
        }
    }

    private void carry(Table table) {
        if (options.policy() == FsmPolicy.SMALL_TABLES_SHARED && !isSmall(table)) {
            for (int i = 0; i < options.creationThreshold(); i++) {
                if (table.seen[i] != UNKNOWN) {
                    table.mapped[i] = table.seen[i];
                    table.stale[i] = false;
                    table.seen[i] = UNKNOWN;
                }
            }
        }
    }

    private static int needed(int wanted) {
        return Math.min(FreeSpaceMap.categoryNeeded(wanted), 254);
    }

    private void checkAnswer(
            Table table, int block, List<Integer> tried, int wanted, boolean first) {
        if (block == BlockNumber.INVALID) {
            return;
        }
        check(block >= 0 && block < table.blocks, "block " + block + " of " + table.blocks);
        check(!tried.contains(block), "block " + block + " tried twice");
        boolean fromMap =
                table.hasFork
                        && (table.stale[block]
                                || table.mapped[block] >= FreeSpaceMap.categoryNeeded(wanted));
        if (fromMap) {
            return;
        }
        if (!isSmall(table)) {
            check(first && block == table.blocks - 1, "block " + block + " has no room");
        } else if (options.policy() == FsmPolicy.SMALL_TABLES_LOCAL) {
            check(block == nextInTurn(table, tried), "block " + block + " is not in turn");
        } else if (!table.hasFork) {
            int seen = table.seen[block];
            check(seen == UNKNOWN || seen >= needed(wanted), "block " + block + " was seen full");
        }
    }

    private static int nextInTurn(Table table, List<Integer> tried) {
        for (int block = table.blocks - 1; block >= 0; block -= 2) {
            if (!tried.contains(block)) {
                return block;
            }
        }
        return BlockNumber.INVALID;
    }

    /** Here lies the difference between the policies. */
    private void checkMayGrow(Table table, List<Integer> tried, int wanted) {
        for (int block = 0; block < table.blocks; block++) {
            int at = block;
            check(
                    tried.contains(block)
                            || table.stale[block]
                            || table.mapped[block] < FreeSpaceMap.categoryNeeded(wanted),
                    "grows although the map has block " + at + " for " + wanted);
            if (isSmall(table) && options.policy() == FsmPolicy.SMALL_TABLES_SHARED) {
                boolean full = table.seen[block] != UNKNOWN && table.seen[block] < needed(wanted);
                check(tried.contains(block) || full, "grows and did not try block " + block);
            }
        }
        if (isSmall(table) && options.policy() == FsmPolicy.SMALL_TABLES_LOCAL) {
            int next = nextInTurn(table, tried);
            check(next == BlockNumber.INVALID, "grows and did not try block " + next);
        }
    }

    /** Rows go and nobody is told, as when a page is pruned. */
    private void delete(Table table) {
        if (table.blocks > 0) {
            int block = random.nextInt(table.blocks);
            table.free[block] =
                    Math.min(FreeSpaceMap.MAX_REQUEST, table.free[block] + random.nextInt(6000));
        }
    }

    private void vacuum(Table table) {
        for (int block = 0; block < table.blocks; block++) {
            table.free[block] =
                    Math.min(FreeSpaceMap.MAX_REQUEST, table.free[block] + random.nextInt(3000));
            one.space.record(buffers(), table.relation, block, table.free[block]);
            reported(table, block, table.free[block], 0);
        }
        one.space.vacuumRange(buffers(), table.relation, 0, BlockNumber.INVALID);
    }

    private void truncate(Table table, int blocks) {
        one.space.forget();
        long hint = table.relation.hint();
        truncation.truncate(f.backend, table.relation, blocks, true);
        if (keepsHint) {
            table.relation.replaceHint(table.relation.hint(), hint);
        }
        cut(table, blocks);
        Arrays.fill(table.mapped, blocks, MOST_BLOCKS + 1, 0);
        Arrays.fill(table.stale, blocks, MOST_BLOCKS + 1, false);
    }

    /** C13: the heap is shorter than the map knows; what was in memory is gone. */
    private void crash(Table table, int blocks) {
        for (Worker worker : workers) {
            worker.space.forget();
        }
        f.heapBlocks(table.relation, blocks);
        SharedFreeSpace.invalidate(table.relation);
        cut(table, blocks);
        Arrays.fill(table.stale, blocks, MOST_BLOCKS + 1, table.hasFork);
    }

    private static void cut(Table table, int blocks) {
        table.blocks = blocks;
        Arrays.fill(table.seen, UNKNOWN);
    }

    private static void check(boolean condition, String message) {
        if (!condition) {
            throw new AssertionError(message);
        }
    }

    @Override
    public void close() {
        f.close();
    }
}
