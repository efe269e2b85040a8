package org.pgkernel.bufmgr;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.base.error.RefusedException;

/**
 * One backend of the stress: does one thing after another, by chance, each in a scope of its own.
 * What uses the pages of existing relations is here, what makes and removes them in {@link
 * StressDdl}.
 *
 * <p>No deadlock of its own making: a backend uses one relation at a time; it locks pages of one
 * fork by ascending block; it waits for a cleanup lock with nothing else pinned or locked.
 */
final class StressWorker {
    /** What it does, and how often out of the sum. */
    enum Operation {
        READ(200),
        READ_ZERO_ON_ERROR(40),
        READ_ZERO_AND_LOCK(30),
        READ_ZERO_AND_CLEANUP_LOCK(30),
        READ_MANY(80),
        SCAN_THROUGH_A_RING(15),
        VACUUM_THROUGH_A_RING(15),
        PREFETCH(10),
        CHANGE(220),
        CHANGE_TWO(50),
        HINT(100),
        CLEANUP(30),
        TRY_CLEANUP(30),
        EXTEND(30),
        EXTEND_UNDER_A_LOCK(10),
        EXTEND_BY(20),
        NESTED_SCOPES(30),
        ABORT(30),
        FLUSH_ONE(20),
        FLUSH_RELATION(5),
        FLUSH_RELATIONS(3),
        FLUSH_DATABASE(3),
        TRUNCATE(3),
        DROP_RELATION(2),
        DROP_RELATIONS(1),
        DROP_DATABASE(1),
        DROP_BUFFERS_ONLY(2),
        SNAPSHOT(5);

        final int weight;

        Operation(int weight) {
            this.weight = weight;
        }
    }

    private static final Operation[] BY_WEIGHT = byWeight();

    final StressRun run;
    final BufferPool pool;
    final Random random;
    final BackendBuffers backend;
    private final StressDdl ddl;
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);
    private final int[] buffers = new int[32];
    private final BufferAccessStrategy bulkRead;
    private final BufferAccessStrategy bulkWrite;
    private final BufferAccessStrategy vacuum;

    // What the operation at hand uses; set by use().
    private StressRelation relation;
    private int fork;

    private static Operation[] byWeight() {
        List<Operation> all = new ArrayList<>();
        for (Operation operation : Operation.values()) {
            for (int i = 0; i < operation.weight; i++) {
                all.add(operation);
            }
        }
        return all.toArray(Operation[]::new);
    }

    StressWorker(StressRun run, int number) {
        this.run = run;
        pool = run.pool;
        random = new Random(run.plan.seed() * 31 + number);
        backend =
                pool.backend(
                        "worker" + number,
                        leak -> {
                            throw new AssertionError(leak);
                        });
        ddl = new StressDdl(this);
        int nbuffers = pool.nbuffers();
        bulkRead = BufferAccessStrategy.of(BufferAccessStrategy.Type.BULK_READ, nbuffers);
        bulkWrite = BufferAccessStrategy.of(BufferAccessStrategy.Type.BULK_WRITE, nbuffers);
        vacuum = BufferAccessStrategy.of(BufferAccessStrategy.Type.VACUUM, nbuffers);
    }

    void run() {
        int seen = 0;
        while (true) {
            seen = run.meet(seen);
            Operation operation = BY_WEIGHT[random.nextInt(BY_WEIGHT.length)];
            int faults = run.disk.faults();
            try (BufferScope scope = backend.enter(operation.name())) {
                apply(operation);
                scope.succeeded();
            } catch (NoFreeBufferException e) {
                run.tally.noFreeBuffer.increment();
            } catch (DiskException | DamagedDataException e) {
                run.expectFault(faults, e);
            }
            if (backend.pinnedBuffers() != 0) {
                throw new AssertionError("pins left after " + operation);
            }
            run.tally.operations[operation.ordinal()].increment();
        }
    }

    private void apply(Operation operation) {
        switch (operation) {
            case FLUSH_RELATION, FLUSH_RELATIONS, FLUSH_DATABASE -> ddl.flush(operation);
            case TRUNCATE -> ddl.truncate();
            case DROP_RELATION -> ddl.dropRelations(1);
            case DROP_RELATIONS -> ddl.dropRelations(2);
            case DROP_DATABASE -> ddl.dropDatabase();
            case DROP_BUFFERS_ONLY -> ddl.dropBuffersOnly();
            case SNAPSHOT -> ddl.snapshot();
            default -> {
                relation = run.relations.get(random.nextInt(run.relations.size()));
                relation.use.readLock().lock();
                try {
                    fork = random.nextInt(8) == 0 ? 1 : 0;
                    use(operation, relation.handle.nblocks(fork()));
                } finally {
                    relation.use.readLock().unlock();
                }
            }
        }
    }

    private ForkNumber fork() {
        return StressRelation.FORKS[fork];
    }

    /**
     * @param blocks of the fork, as it is at least until the relation is given up
     */
    private void use(Operation operation, int blocks) {
        switch (operation) {
            case EXTEND -> extend(blocks, false);
            case EXTEND_UNDER_A_LOCK -> extend(blocks, true);
            case EXTEND_BY -> extendBy(blocks);
            default -> {
                if (blocks == 0) {
                    extend(blocks, false);
                } else {
                    usePages(operation, blocks);
                }
            }
        }
    }

    private void usePages(Operation operation, int blocks) {
        int block = Math.min(random.nextInt(blocks), random.nextInt(blocks));
        switch (operation) {
            case READ -> readAndLook(block, ReadMode.NORMAL);
            case READ_ZERO_ON_ERROR -> readAndLook(block, ReadMode.ZERO_ON_ERROR);
            case READ_ZERO_AND_LOCK -> rewrite(block, ReadMode.ZERO_AND_LOCK);
            case READ_ZERO_AND_CLEANUP_LOCK -> rewrite(block, ReadMode.ZERO_AND_CLEANUP_LOCK);
            case READ_MANY -> readMany(block, blocks);
            case SCAN_THROUGH_A_RING -> scan(blocks, bulkRead);
            case VACUUM_THROUGH_A_RING -> vacuum(blocks);
            case PREFETCH -> pool.prefetch(relation.handle, fork(), block, blocks - block);
            case CHANGE -> change(block, null);
            case CHANGE_TWO -> changeTwo(block, blocks);
            case HINT -> hints(block, blocks);
            case CLEANUP -> cleanup(block, true);
            case TRY_CLEANUP -> cleanup(block, false);
            case NESTED_SCOPES -> nestedScopes(block, blocks);
            case ABORT -> abort(block, blocks);
            case FLUSH_ONE -> flushOne(block);
            default -> throw new AssertionError(operation);
        }
    }

    /** Reads a page; may be told that it is damaged, in the normal mode. */
    private int read(int block, ReadMode mode, BufferAccessStrategy ring) {
        boolean zeroing = mode == ReadMode.ZERO_AND_LOCK || mode == ReadMode.ZERO_AND_CLEANUP_LOCK;
        run.disk.bearsDamage(mode == ReadMode.NORMAL);
        boolean known = false;
        try {
            int buffer = backend.read(relation.handle, fork(), block, mode, ring);
            known = !zeroing;
            return buffer;
        } finally {
            run.disk.bearsDamage(false);
            (known ? run.pagesAsked : run.pagesPerhaps).increment();
        }
    }

    private void release(int buffer) {
        if (!run.plan.mutant().forgetsPin()) {
            backend.release(buffer);
        }
    }

    /** The page is locked, shared at least; @param still exclusively */
    private void look(int buffer, int block, boolean still) {
        pool.wrap(buffer, page);
        if (pool.block(buffer) != block) {
            throw new AssertionError("the buffer of another block " + relation.place(fork, block));
        }
        String fault = relation.fault(page, fork, block, still);
        if (fault != null) {
            throw new AssertionError(fault + " at " + relation.place(fork, block));
        }
    }

    private void readAndLook(int block, ReadMode mode) {
        int buffer = read(block, mode, null);
        backend.lockShared(buffer);
        look(buffer, block, false);
        backend.unlock(buffer);
        release(buffer);
    }

    /** The page may come as zeros, without a read; then all of it is made anew. */
    private void rewrite(int block, ReadMode mode) {
        int buffer;
        try {
            buffer = read(block, mode, null);
        } catch (RefusedException e) {
            run.tally.cleanupRefused.increment();
            return;
        }
        pool.wrap(buffer, page);
        if (!pool.io.isZeroPage(buffer)) {
            look(buffer, block, true);
        }
        store(buffer, block, true);
        backend.unlock(buffer);
        release(buffer);
    }

    /** Changes a page that is exclusively locked. */
    private void store(int buffer, int block, boolean anew) {
        pool.wrap(buffer, page);
        relation.change(
                page,
                fork,
                block,
                anew || relation.version(fork, block) == 0,
                () -> backend.markDirty(buffer),
                run.wal);
    }

    private void change(int block, BufferAccessStrategy ring) {
        int buffer = read(block, ReadMode.NORMAL, ring);
        backend.lockExclusive(buffer);
        look(buffer, block, true);
        store(buffer, block, false);
        backend.unlock(buffer);
        release(buffer);
    }

    private void changeTwo(int block, int blocks) {
        int other = block + 1 + random.nextInt(10);
        if (other >= blocks) {
            return;
        }
        try (BufferPin first = pin(block);
                ContentLock firstLock = first.lockExclusive();
                BufferPin second = pin(other);
                ContentLock secondLock = second.lockExclusive()) {
            look(first.buffer(), block, true);
            look(second.buffer(), other, true);
            store(first.buffer(), block, false);
            store(second.buffer(), other, false);
        }
    }

    private BufferPin pin(int block) {
        boolean known = false;
        try {
            BufferPin pin = backend.pin(relation.handle, fork(), block, ReadMode.NORMAL);
            known = true;
            return pin;
        } finally {
            (known ? run.pagesAsked : run.pagesPerhaps).increment();
        }
    }

    private void readMany(int block, int blocks) {
        int count = Math.min(1 + random.nextInt(12), blocks - block);
        BufferAccessStrategy ring = random.nextInt(3) == 0 ? bulkRead : null;
        int got = pinMany(block, count, ring);
        for (int i = 0; i < got; i++) {
            backend.lockShared(buffers[i]);
            look(buffers[i], block + i, false);
            backend.unlock(buffers[i]);
            release(buffers[i]);
        }
    }

    private int pinMany(int block, int count, BufferAccessStrategy ring) {
        run.disk.bearsDamage(true);
        int got = 0;
        try {
            got =
                    backend.readMany(
                            relation.handle, fork(), block, count, ReadMode.NORMAL, ring, buffers);
            return got;
        } finally {
            run.disk.bearsDamage(false);
            run.pagesAsked.add(got);
            run.pagesPerhaps.add(got == 0 ? count : 0);
        }
    }

    private void scan(int blocks, BufferAccessStrategy ring) {
        int block = 0;
        while (block < blocks) {
            int got = pinMany(block, Math.min(16, blocks - block), ring);
            for (int i = 0; i < got; i++) {
                backend.lockShared(buffers[i]);
                look(buffers[i], block + i, false);
                backend.unlock(buffers[i]);
                release(buffers[i]);
            }
            block += got;
        }
    }

    private void vacuum(int blocks) {
        for (int block = 0; block < blocks; block++) {
            int buffer = read(block, ReadMode.NORMAL, vacuum);
            if (backend.tryLockForCleanup(buffer)) {
                look(buffer, block, true);
                if (random.nextInt(4) == 0) {
                    store(buffer, block, false);
                }
                backend.unlock(buffer);
            }
            release(buffer);
        }
    }

    /** A few neighbours, as a scan sets hints. */
    private void hints(int block, int blocks) {
        for (int i = block; i < Math.min(block + 4, blocks); i++) {
            int buffer = read(i, ReadMode.NORMAL, null);
            backend.lockShared(buffer);
            look(buffer, i, false);
            if (relation.version(fork, i) != 0 && !run.plan.recovery()) {
                boolean standard = random.nextBoolean();
                relation.hint(page, fork, i, () -> backend.markDirtyHint(buffer, standard));
            }
            backend.unlock(buffer);
            release(buffer);
        }
    }

    private void cleanup(int block, boolean wait) {
        int buffer = read(block, ReadMode.NORMAL, null);
        boolean locked = true;
        try {
            if (wait) {
                backend.lockForCleanup(buffer);
            } else {
                locked = backend.tryLockForCleanup(buffer);
            }
        } catch (RefusedException e) {
            run.tally.cleanupRefused.increment();
            locked = false;
        }
        if (locked) {
            look(buffer, block, true);
            store(buffer, block, random.nextBoolean());
            backend.unlock(buffer);
        }
        release(buffer);
    }

    private void extend(int blocks, boolean underALock) {
        if (blocks > StressRelation.MOST[fork]) {
            return;
        }
        int low = -1;
        if (underALock && blocks > 0) {
            low = read(random.nextInt(blocks), ReadMode.NORMAL, null);
            backend.lockExclusive(low);
        }
        int buffer = backend.extend(relation.handle, fork(), true);
        run.pagesAdded.increment();
        fillNew(buffer, pool.block(buffer));
        backend.unlock(buffer);
        release(buffer);
        if (low >= 0) {
            backend.unlock(low);
            release(low);
        }
    }

    private void extendBy(int blocks) {
        if (blocks > StressRelation.MOST[fork]) {
            return;
        }
        BufferAccessStrategy ring = random.nextBoolean() ? bulkWrite : null;
        boolean lock = random.nextBoolean();
        int got =
                backend.extendBy(
                        relation.handle, fork(), 1 + random.nextInt(8), ring, buffers, lock);
        run.pagesAdded.add(got);
        int first = pool.block(buffers[0]);
        for (int i = 0; i < got; i++) {
            if (i > 0 || !lock) {
                backend.lockExclusive(buffers[i]);
            }
            fillNew(buffers[i], first + i);
            backend.unlock(buffers[i]);
            release(buffers[i]);
        }
    }

    /** A new page, which somebody else may have found and filled since. */
    private void fillNew(int buffer, int block) {
        relation.given(fork, block);
        look(buffer, block, true);
        store(buffer, block, false);
    }

    /** The inner scope fails with pins and a lock; the outer one goes on with what it has. */
    private void nestedScopes(int block, int blocks) {
        int outer = read(block, ReadMode.NORMAL, null);
        backend.pinAgain(outer);
        int had = backend.pins(outer);
        try (BufferScope inner = backend.enter("inner")) {
            for (int i = block; i < Math.min(block + 3, blocks); i++) {
                int buffer = read(i, ReadMode.NORMAL, null);
                backend.lockShared(buffer);
                look(buffer, i, false);
            }
        }
        if (backend.pins(outer) != had || backend.pinnedBuffers() != 1) {
            throw new AssertionError("pins of an outer scope went, or of the inner one stay");
        }
        backend.lockExclusive(outer);
        look(outer, block, true);
        backend.unlock(outer);
        backend.release(outer);
        release(outer);
    }

    /** Ends in a failure, holding pins and a lock. */
    private void abort(int block, int blocks) {
        try (BufferScope failing = backend.enter("failing")) {
            pinMany(block, Math.min(6, blocks - block), null);
            backend.lockExclusive(buffers[0]);
            look(buffers[0], block, true);
            if (random.nextBoolean()) {
                store(buffers[0], block, false);
            }
        }
    }

    private void flushOne(int block) {
        int buffer = read(block, ReadMode.NORMAL, null);
        backend.lockShared(buffer);
        look(buffer, block, false);
        long version = relation.version(fork, block);
        pool.flushOne(buffer);
        if (relation.written(fork, block) < version) {
            throw new AssertionError("flushed and not written " + relation.place(fork, block));
        }
        backend.unlock(buffer);
        release(buffer);
    }
}
