package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.function.Supplier;
import org.jetbrains.kotlinx.lincheck.Actor;
import org.jetbrains.kotlinx.lincheck.execution.ExecutionScenario;
import org.jetbrains.lincheck.LincheckAssertionError;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.StressOptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.pgkernel.base.ForkNumber;

/**
 * A fork's size is linearizable, and so is the remembered one whenever it calls itself accurate: as
 * if each operation happened at one moment, handles that are closed in between included.
 *
 * <p>Operations keep the access rules of the module's README: who appends or truncates has a lock
 * of the relation, who asks, writes or closes has none.
 */
@Timeout(300)
class SizeLincheckTest {
    private static final ForkNumber MAIN = ForkNumber.MAIN;

    /** What the operations act on; one relation, made anew for each run. */
    public abstract static class Sizes {
        final StorageManager manager;

        Sizes(SizePolicy policy, boolean recovery, int segmentBlocks) {
            this(policy, recovery, segmentBlocks, RememberedSize::new);
        }

        Sizes(
                SizePolicy policy,
                boolean recovery,
                int segmentBlocks,
                Supplier<RememberedSize> sizes) {
            LengthDisk disk = new LengthDisk();
            manager =
                    new StorageManager(
                            disk,
                            "/data",
                            segmentBlocks,
                            policy,
                            new SyncRequests(disk, "/data"),
                            100,
                            sizes);
            manager.inRecovery(recovery);
            relation().create(MAIN, recovery);
        }

        final SmgrRelation relation() {
            return manager.open(1663, 5, 100);
        }

        final int known() {
            SmgrRelation relation = relation();
            long size = relation.rememberedSize(MAIN);
            return ForkSize.isAccurate(size) ? ForkSize.blocks(size) : relation.nblocks(MAIN);
        }
    }

    /** On a primary: backends append, vacuum truncates, others ask; segments of two blocks. */
    @Param(name = "blocks", gen = IntGen.class, conf = "0:3")
    public static class Primary extends Sizes {
        public Primary() {
            super(SizePolicy.SHARED, false, 2);
        }

        @Operation
        public int size() {
            return relation().nblocks(MAIN);
        }

        @Operation
        public int remembered() {
            return known();
        }

        @Operation
        public synchronized int append() {
            int block = relation().nblocks(MAIN);
            relation().extend(MAIN, block, 0, false);
            return block;
        }

        @Operation
        public synchronized int truncate(@Param(name = "blocks") int blocks) {
            int before = relation().nblocks(MAIN);
            if (blocks < before) {
                relation().truncate(MAIN, blocks);
            }
            return before;
        }

        @Operation
        public void reopen() {
            manager.close(relation());
        }
    }

    /** In redo: blocks come in any order, by extension and by writes of pages past the end. */
    @Param(name = "block", gen = IntGen.class, conf = "0:6")
    public static class Redo extends Sizes {
        public Redo() {
            super(SizePolicy.RECOVERY_ONLY, true, 8);
        }

        @Operation
        public int size() {
            return relation().nblocks(MAIN);
        }

        @Operation
        public int remembered() {
            return known();
        }

        @Operation
        public void extend(@Param(name = "block") int block) {
            relation().extend(MAIN, block, 8192, false);
        }

        @Operation
        public void write(@Param(name = "block") int block) {
            relation().write(MAIN, block, 8192, false);
        }

        @Operation
        public void reopen() {
            manager.close(relation());
        }
    }

    /** The same with two operations only, for a scenario that is searched deep. */
    @Param(name = "block", gen = IntGen.class, conf = "3:4")
    public static class WritesPastTheEnd extends Sizes {
        public WritesPastTheEnd() {
            this(RememberedSize::new);
        }

        WritesPastTheEnd(Supplier<RememberedSize> sizes) {
            super(SizePolicy.RECOVERY_ONLY, true, 8, sizes);
        }

        @Operation
        public int size() {
            return relation().nblocks(MAIN);
        }

        @Operation
        public void write(@Param(name = "block") int block) {
            relation().write(MAIN, block, 8192, false);
        }
    }

    /** A write looks at the word only when there is a size in it, as it once did. */
    @Param(name = "block", gen = IntGen.class, conf = "3:4")
    public static class ForgottenWritesPastTheEnd extends WritesPastTheEnd {
        public ForgottenWritesPastTheEnd() {
            super(SizeMutant.WRITE_FORGETS_KNOWN_SIZES_ONLY);
        }
    }

    /** Two threads ask the size and write past the end, then the size is asked again. */
    private static ExecutionScenario writePastTheEndBesideAQuestion() {
        return new ExecutionScenario(
                List.of(),
                List.of(List.of(actor("size")), List.of(actor("write", 3), actor("write", 4))),
                List.of(actor("size")),
                null);
    }

    private static Actor actor(String operation, Object... arguments) {
        Class<?>[] types = arguments.length == 0 ? new Class<?>[0] : new Class<?>[] {int.class};
        try {
            return new Actor(
                    WritesPastTheEnd.class.getMethod(operation, types), List.of(arguments));
        } catch (NoSuchMethodException e) {
            throw new AssertionError(e);
        }
    }

    private static ModelCheckingOptions modelChecking(int iterations, int invocations) {
        return new ModelCheckingOptions()
                .iterations(iterations)
                .invocationsPerIteration(invocations)
                .threads(2)
                .actorsBefore(0)
                .actorsPerThread(2)
                .actorsAfter(1);
    }

    private static void stress(Class<?> sizes) {
        new StressOptions()
                .iterations(5)
                .invocationsPerIteration(200)
                .threads(3)
                .actorsPerThread(3)
                .check(sizes);
    }

    @Test
    void sizesOnAPrimaryAreLinearizable() {
        modelChecking(6, 100).check(Primary.class);
        stress(Primary.class);
    }

    @Test
    void sizesInRedoAreLinearizable() {
        modelChecking(6, 100).check(Redo.class);
        stress(Redo.class);
    }

    @Test
    void aWritePastTheEndIsNeverForgotten() {
        modelChecking(0, 600)
                .addCustomScenario(writePastTheEndBesideAQuestion())
                .check(WritesPastTheEnd.class);
    }

    /** The search is deep enough to find what was wrong once. */
    @Test
    void aForgottenWritePastTheEndIsFound() {
        assertThrows(
                LincheckAssertionError.class,
                () ->
                        modelChecking(0, 600)
                                .addCustomScenario(writePastTheEndBesideAQuestion())
                                .check(ForgottenWritesPastTheEnd.class));
    }
}
