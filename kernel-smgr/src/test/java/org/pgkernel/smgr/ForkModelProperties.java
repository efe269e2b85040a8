package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.RefusedException;

/**
 * Any sequence of operations leaves a fork as a plain list of blocks would be: the same size and
 * bytes through every handle, the segment files full, partial, empty in this order, and no
 * remembered size that claims to be accurate and is not.
 */
class ForkModelProperties {
    private enum Kind {
        CREATE,
        EXTEND,
        EXTEND_BEYOND,
        ZERO_EXTEND,
        WRITE,
        TRUNCATE,
        UNLINK,
        READ,
        CLOSE,
        FORGET,
        CHECKPOINT,
        OTHER_RELATION
    }

    /**
     * @param amount picks a block or a count @param second whether the second manager acts
     */
    private record Step(Kind kind, int amount, boolean second) {}

    @Provide
    Arbitrary<List<Step>> steps() {
        return Combinators.combine(
                        Arbitraries.of(Kind.class),
                        Arbitraries.integers().between(0, 30),
                        Arbitraries.of(false, true))
                .as(Step::new)
                .list()
                .ofMinSize(10)
                .ofMaxSize(60);
    }

    @Property(tries = 80)
    void twoHandlesOutsideRecoveryEqualAList(@ForAll("steps") List<Step> steps) throws IOException {
        new Run(SizePolicy.RECOVERY_ONLY, false, true).run(steps);
    }

    @Property(tries = 80)
    void sharedSizesEqualAList(@ForAll("steps") List<Step> steps) throws IOException {
        new Run(SizePolicy.SHARED, false, false).run(steps);
    }

    @Property(tries = 80)
    void redoEqualsAList(@ForAll("steps") List<Step> steps) throws IOException {
        new Run(SizePolicy.RECOVERY_ONLY, true, false).run(steps);
    }

    private static final class Run {
        private final Path directory;
        private final boolean redo;
        private final boolean twoHandles;
        private final Fixture f;
        private final StorageManager second;

        /** One byte a block; null when there is no fork. */
        private List<Integer> model;

        /** Dropped outside redo, and no checkpoint since. */
        private boolean lingering;

        private int fill = 1;
        private int checks;

        Run(SizePolicy policy, boolean redo, boolean twoHandles) throws IOException {
            directory = Files.createTempDirectory("smgr-model");
            this.redo = redo;
            this.twoHandles = twoHandles;
            f = new Fixture(directory, policy, new PosixDisk(), 2);
            second =
                    new StorageManager(
                            f.disk,
                            directory.toString(),
                            Fixture.SEGMENT,
                            SizePolicy.RECOVERY_ONLY,
                            f.requests,
                            2);
            f.manager.inRecovery(redo);
        }

        void run(List<Step> steps) throws IOException {
            try {
                for (Step step : steps) {
                    SmgrRelation handle =
                            twoHandles && step.second()
                                    ? second.open(Fixture.SPC, Fixture.DB, 100)
                                    : f.relation(100);
                    apply(step, handle);
                    check();
                }
                f.checkpoint();
                lingering = false;
                checks = 7;
                check();
            } finally {
                second.close();
                f.close();
                assertEquals(0, Fixture.descriptors(directory));
                delete(directory);
            }
        }

        private void apply(Step step, SmgrRelation handle) throws IOException {
            if (step.kind() == Kind.CHECKPOINT) {
                f.checkpoint();
                lingering = false;
                return;
            }
            if (step.kind() == Kind.OTHER_RELATION) {
                // Pushes this relation's files out of the few descriptors.
                f.relation(200 + step.amount()).create(Fixture.MAIN, true);
                return;
            }
            if (step.kind() == Kind.CREATE) {
                create(handle);
                return;
            }
            if (model == null) {
                if (step.kind() == Kind.READ && !lingering) {
                    assertThrows(
                            DiskException.class, () -> f.read(handle, Fixture.MAIN, step.amount()));
                }
                return;
            }
            applyToExisting(step, handle);
        }

        private void create(SmgrRelation handle) {
            if (redo) {
                handle.create(Fixture.MAIN, true);
                model = model == null ? new ArrayList<>() : model;
            } else if (model != null || lingering) {
                assertEquals(
                        DiskException.EEXIST,
                        assertThrows(DiskException.class, () -> handle.create(Fixture.MAIN, false))
                                .errno());
            } else {
                handle.create(Fixture.MAIN, false);
                model = new ArrayList<>();
            }
        }

        private void applyToExisting(Step step, SmgrRelation handle) {
            int size = handle.nblocks(Fixture.MAIN);
            int amount = step.amount();
            fill = fill % 250 + 1;
            switch (step.kind()) {
                case EXTEND -> {
                    f.extend(handle, Fixture.MAIN, size, fill);
                    model.add(fill);
                }
                case EXTEND_BEYOND -> {
                    f.extend(handle, Fixture.MAIN, size + amount, fill);
                    pad(size + amount);
                    model.add(fill);
                }
                case ZERO_EXTEND -> {
                    handle.zeroExtend(Fixture.MAIN, size, amount, false);
                    pad(size + amount);
                }
                case WRITE -> write(handle, amount);
                case TRUNCATE -> {
                    if (amount <= size || redo) {
                        handle.truncate(Fixture.MAIN, amount);
                        model = amount < size ? new ArrayList<>(model.subList(0, amount)) : model;
                    } else {
                        assertThrows(
                                RefusedException.class,
                                () -> handle.truncate(Fixture.MAIN, amount));
                    }
                }
                case UNLINK -> {
                    handle.manager().unlinkAll(new SmgrRelation[] {handle}, 1, redo);
                    // What an invalidation message does in PostgreSQL.
                    second.close(second.open(Fixture.SPC, Fixture.DB, 100));
                    f.manager.close(f.relation(100));
                    model = null;
                    lingering = !redo;
                }
                case READ -> read(handle, amount);
                case CLOSE -> handle.manager().close(handle);
                case FORGET -> handle.forgetSizes();
                default -> throw new AssertionError(step);
            }
        }

        private void write(SmgrRelation handle, int block) {
            if (block < model.size()) {
                f.write(handle, Fixture.MAIN, block, fill);
                model.set(block, fill);
            } else if (redo) {
                f.write(handle, Fixture.MAIN, block, fill);
                pad(block);
                model.add(fill);
            }
        }

        private void read(SmgrRelation handle, int block) {
            if (block < model.size()) {
                assertEquals(model.get(block), f.read(handle, Fixture.MAIN, block));
            } else if (redo) {
                assertEquals(0, f.read(handle, Fixture.MAIN, block));
                // Segments below the block are filled up, as PostgreSQL does in recovery.
                pad(Math.max(model.size(), block / Fixture.SEGMENT * Fixture.SEGMENT));
            } else {
                assertThrows(DamagedDataException.class, () -> f.read(handle, Fixture.MAIN, block));
            }
        }

        private void pad(int blocks) {
            while (model.size() < blocks) {
                model.add(0);
            }
        }

        private void check() throws IOException {
            SmgrRelation handle = f.relation(100);
            long remembered = handle.rememberedSize(Fixture.MAIN);
            if (ForkSize.isKnown(remembered) && ForkSize.isAccurate(remembered)) {
                assertEquals(
                        model.size(), ForkSize.blocks(remembered), "an accurate size is the size");
            }
            assertEquals(model != null || lingering, handle.exists(Fixture.MAIN));
            if (model == null) {
                assertEquals(lingering ? 0 : -1, f.fileBlocks("100"));
                assertFalse(Files.exists(f.file("100.1")));
                return;
            }
            assertEquals(model.size(), handle.nblocks(Fixture.MAIN));
            if (twoHandles) {
                assertEquals(
                        model.size(),
                        second.open(Fixture.SPC, Fixture.DB, 100).nblocks(Fixture.MAIN));
            }
            // All blocks now and then, else a few.
            int stride = ++checks % 8 == 0 ? 1 : 1 + model.size() / 8;
            for (int block = checks % stride; block < model.size(); block += stride) {
                assertEquals(
                        model.get(block), f.read(handle, Fixture.MAIN, block), "block " + block);
            }
            long left = model.size();
            for (int segment = 0; ; segment++) {
                long blocks = f.fileBlocks(segment == 0 ? "100" : "100." + segment);
                if (blocks < 0) {
                    assertEquals(0, left);
                    break;
                }
                assertEquals(Math.min(left, Fixture.SEGMENT), blocks, "segment " + segment);
                left -= blocks;
            }
            assertTrue(f.manager.openFileCount() <= 2);
        }
    }

    private static void delete(Path directory) throws IOException {
        Files.walkFileTree(
                directory,
                new SimpleFileVisitor<>() {
                    @Override
                    public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
                            throws IOException {
                        Files.delete(file);
                        return FileVisitResult.CONTINUE;
                    }

                    @Override
                    public FileVisitResult postVisitDirectory(Path visited, IOException e)
                            throws IOException {
                        Files.delete(visited);
                        return FileVisitResult.CONTINUE;
                    }
                });
    }
}
