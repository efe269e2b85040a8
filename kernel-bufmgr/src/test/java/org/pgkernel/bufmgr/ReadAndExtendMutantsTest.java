package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Vectored reads and extensions with a fault each: the check of {@link GrowingForkProperties} finds
 * every one.
 */
@Timeout(120)
class ReadAndExtendMutantsTest {
    private static final int RUNS = 40;

    enum Mutant {
        /** Behind a segment's border the run goes on one block early. */
        BORDER_IS_OFF_BY_ONE,
        /** A call that fails keeps the pin on the first page that came. */
        PIN_LEAKED_WHEN_A_READ_FAILS,
        /** Of a run only the first page is checked, again and again. */
        WRONG_PAGE_IS_CHECKED,
        /** A run that came short counts as whole. */
        SHORT_RUN_TAKEN_FOR_WHOLE,
        /** The last page of a run keeps its I/O when the run is given up. */
        LAST_CLAIM_OF_A_READ_KEPT,
        /** The file grows by one page less than the pool. */
        FILE_GROWS_ONE_PAGE_LESS,
        /** Pages are given out whose space was never allocated. */
        FILE_DOES_NOT_GROW,
        /** A failed extension keeps its last page. */
        LAST_CLAIM_OF_AN_EXTENSION_KEPT
    }

    @ParameterizedTest
    @EnumSource(Mutant.class)
    void everyMutantIsCaught(Mutant mutant) throws Exception {
        for (int seed = 0; seed < RUNS; seed++) {
            if (run(
                            seed,
                            pool -> new FaultyReader(pool, mutant),
                            pool -> new FaultyExtension(pool, mutant))
                    != null) {
                return;
            }
        }
        fail(mutant + " survived " + RUNS + " runs");
    }

    /** The same runs pass without a fault, so it is the fault that is caught. */
    @Test
    void withoutAFaultTheRunsPass() throws Exception {
        for (int seed = 0; seed < RUNS; seed++) {
            Throwable found = run(seed, GrowingForkRun::reader, GrowingForkRun::extension);
            int failed = seed;
            assertNull(found, () -> "seed " + failed + ": " + found);
        }
    }

    /** In a thread of its own: a fault may leave locks that are noted as the thread's. */
    private static Throwable run(
            int seed,
            Function<BufferPool, VectoredReader> readers,
            Function<BufferPool, RelationExtension> extensions)
            throws InterruptedException {
        AtomicReference<Throwable> found = new AtomicReference<>();
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                found.set(runHere(seed, readers, extensions));
                            } catch (IOException e) {
                                throw new UncheckedIOException(e);
                            }
                        });
        thread.start();
        thread.join();
        return found.get();
    }

    private static Throwable runHere(
            int seed,
            Function<BufferPool, VectoredReader> readers,
            Function<BufferPool, RelationExtension> extensions)
            throws IOException {
        Path directory = Files.createTempDirectory("mutant");
        int[] pools = {16, 32, 64};
        SizePolicy policy = SizePolicy.values()[seed % 2];
        try (GrowingForkRun run =
                new GrowingForkRun(
                        directory, policy, pools[seed % pools.length], readers, extensions)) {
            run.run(GrowingForkRun.random(seed));
            return null;
        } catch (AssertionError | RuntimeException e) {
            return e;
        } finally {
            DropRun.delete(directory);
        }
    }

    private static final class FaultyReader extends VectoredReader {
        private final BufferPool pool;
        private final Mutant mutant;
        private int firstBuffer;
        private int firstBlock;

        FaultyReader(BufferPool pool, Mutant mutant) {
            super(pool.allocator, pool.io);
            this.pool = pool;
            this.mutant = mutant;
        }

        @Override
        int readRun(
                SmgrRelation relation,
                ForkNumber fork,
                int block,
                int[] buffers,
                int from,
                int to) {
            firstBuffer = buffers[from];
            firstBlock = block;
            int border = (block / GrowingForkRun.SEGMENT + 1) * GrowingForkRun.SEGMENT;
            int before = border - block;
            if (mutant == Mutant.BORDER_IS_OFF_BY_ONE && before < to - from) {
                int middle = from + before;
                super.readRun(relation, fork, block, buffers, from, middle);
                return before + super.readRun(relation, fork, border - 1, buffers, middle, to);
            }
            int came = super.readRun(relation, fork, block, buffers, from, to);
            return mutant == Mutant.SHORT_RUN_TAKEN_FOR_WHOLE ? to - from : came;
        }

        @Override
        void check(int buffer, int block, boolean zeroOnError) {
            if (mutant == Mutant.WRONG_PAGE_IS_CHECKED) {
                pool.io.checkPage(firstBuffer, firstBlock, zeroOnError);
            } else {
                super.check(buffer, block, zeroOnError);
            }
        }

        @Override
        void unpin(int[] buffers, int from, int to) {
            boolean leak = mutant == Mutant.PIN_LEAKED_WHEN_A_READ_FAILS;
            super.unpin(buffers, leak ? Math.min(from + 1, to) : from, to);
        }

        @Override
        void abandon(int[] buffers, int from, int to) {
            boolean keep = mutant == Mutant.LAST_CLAIM_OF_A_READ_KEPT;
            super.abandon(buffers, from, keep ? to - 1 : to);
        }
    }

    private static final class FaultyExtension extends RelationExtension {
        private final Mutant mutant;

        FaultyExtension(BufferPool pool, Mutant mutant) {
            super(pool.descriptors, pool.allocator, pool.io, pool.content);
            this.mutant = mutant;
        }

        @Override
        void grow(SmgrRelation relation, ForkNumber fork, int block, int count) {
            switch (mutant) {
                case FILE_DOES_NOT_GROW -> {}
                case FILE_GROWS_ONE_PAGE_LESS -> super.grow(relation, fork, block, count - 1);
                default -> super.grow(relation, fork, block, count);
            }
        }

        @Override
        void abandon(int[] buffers, int from, int to) {
            boolean keep = mutant == Mutant.LAST_CLAIM_OF_AN_EXTENSION_KEPT;
            super.abandon(buffers, from, keep ? to - 1 : to);
        }
    }
}
