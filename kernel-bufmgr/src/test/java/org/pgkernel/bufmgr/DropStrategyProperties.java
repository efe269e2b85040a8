package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Whatever sequence of reads, changes, extensions, truncations, drops and checkpoints a pool has seen, in recovery and outside, under
 * LOOKUP it holds the same pages in the same state as under FULL_SCAN (in other buffers, as they are freed in another order), the files are the same bytes, and both are what a model
 * without a pool says: no page of a victim is left, no other page is lost, every change is there.
 */
class DropStrategyProperties {
    private static final int RELATIONS = 4;
    private static final int NBUFFERS = 256; // 8 blocks are the limit of the lookup

    enum Kind {
        EXTEND,
        CHANGE,
        READ,
        RESTORE,
        FLUSH,
        TRUNCATE,
        DROP,
        DROP_BATCH,
        FORGET_SIZES,
        RECOVERY,
        DROP_DATABASE
    }

    record Step(Kind kind, int relation, int fork, int number) {}

    @Provide
    Arbitrary<List<Step>> steps() {
        Arbitrary<Kind> kinds = Arbitraries.frequencyOf(
                Tuple.of(8, Arbitraries.just(Kind.EXTEND)),
                Tuple.of(6, Arbitraries.just(Kind.CHANGE)),
                Tuple.of(4, Arbitraries.just(Kind.READ)),
                Tuple.of(2, Arbitraries.just(Kind.RESTORE)),
                Tuple.of(1, Arbitraries.just(Kind.FLUSH)),
                Tuple.of(3, Arbitraries.just(Kind.TRUNCATE)),
                Tuple.of(2, Arbitraries.just(Kind.DROP)),
                Tuple.of(1, Arbitraries.just(Kind.DROP_BATCH)),
                Tuple.of(1, Arbitraries.just(Kind.FORGET_SIZES)),
                Tuple.of(1, Arbitraries.just(Kind.RECOVERY)),
                Tuple.of(1, Arbitraries.of(Kind.DROP_DATABASE, Kind.READ, Kind.READ)));
        return Combinators.combine(
                        kinds,
                        Arbitraries.integers().between(0, RELATIONS - 1),
                        Arbitraries.integers().between(0, 2),
                        Arbitraries.integers().between(0, 5))
                .as(Step::new)
                .list()
                .ofMaxSize(60);
    }

    @Property(tries = 150)
    void lookupLeavesWhatTheFullScanLeaves(@ForAll("steps") List<Step> steps) throws IOException {
        Path directory = Files.createTempDirectory("drop");
        try (Run scan = new Run(directory.resolve("scan"), DropStrategy.FULL_SCAN, NBUFFERS);
                Run lookup = new Run(directory.resolve("lookup"), DropStrategy.LOOKUP, NBUFFERS)) {
            for (Step step : steps) {
                scan.apply(step);
                lookup.apply(step);
                assertEquals(scan.pages(), lookup.pages(), () -> "after " + step);
                lookup.checkAgainstModel();
            }
            assertEquals(
                    scan.f.pool.dropStatistics().buffersDropped, lookup.f.pool.dropStatistics().buffersDropped);
            scan.finish();
            lookup.finish();
            assertEquals(scan.files(), lookup.files());
        } finally {
            delete(directory);
        }
    }

    /** The same with eviction going on: the clock hand makes buffers differ, but never pages. */
    @Property(tries = 60)
    void eitherStrategyAgreesWithTheModelInASmallPool(@ForAll("steps") List<Step> steps) throws IOException {
        Path directory = Files.createTempDirectory("drop");
        try (Run scan = new Run(directory.resolve("scan"), DropStrategy.FULL_SCAN, 16);
                Run lookup = new Run(directory.resolve("lookup"), DropStrategy.LOOKUP, 33)) {
            for (Step step : steps) {
                scan.apply(step);
                lookup.apply(step);
                scan.checkAgainstModel();
                lookup.checkAgainstModel();
            }
            scan.finish();
            lookup.finish();
            assertEquals(scan.files(), lookup.files());
        } finally {
            delete(directory);
        }
    }

    /** A pool with its files, and what they should hold: versions of each block of each fork that exists. */
    private static final class Run implements AutoCloseable {
        final PoolFixture f;
        final Map<String, List<Integer>> model = new HashMap<>();
        final int[] incarnation = new int[RELATIONS];
        int version;
        boolean inRecovery = true;

        Run(Path directory, DropStrategy strategy, int nbuffers) {
            f = new PoolFixture(directory, true).pool(nbuffers, true, strategy);
        }

        SmgrRelation relation(int r) {
            return f.relation(number(r));
        }

        /** A dropped relation comes back under another number, as it would. */
        int number(int r) {
            return 1000 * (r + 1) + incarnation[r];
        }

        List<Integer> blocks(int r, int fork) {
            return model.get(number(r) + "." + fork);
        }

        void apply(Step step) {
            ForkNumber fork = ForkNumber.of(step.fork());
            SmgrRelation relation = relation(step.relation());
            List<Integer> blocks = blocks(step.relation(), step.fork());
            switch (step.kind()) {
                case EXTEND -> extend(step, relation, fork);
                case CHANGE, RESTORE -> change(step, relation, fork, blocks);
                case READ -> {
                    if (blocks != null && !blocks.isEmpty()) {
                        int block = step.number() % blocks.size();
                        assertEquals(blocks.get(block), f.readVersion(relation, fork, block));
                    }
                }
                case FLUSH -> f.pool.flushAll();
                case TRUNCATE -> truncate(step, relation);
                case DROP -> drop(step.relation());
                case DROP_BATCH -> {
                    int[] all = {step.relation(), (step.relation() + 1) % RELATIONS};
                    drop(all);
                }
                case FORGET_SIZES -> relation.forgetSizes();
                case RECOVERY -> {
                    inRecovery = !inRecovery;
                    f.smgr.inRecovery(inRecovery);
                }
                case DROP_DATABASE -> {
                    f.pool.flushAll(); // nothing may be lost: the files stay
                    f.pool.dropDatabase(PoolFixture.DB);
                }
            }
        }

        void extend(Step step, SmgrRelation relation, ForkNumber fork) {
            List<Integer> blocks = model.get(number(step.relation()) + "." + step.fork());
            if (blocks == null) {
                relation.create(fork, true);
                blocks = new ArrayList<>();
                model.put(number(step.relation()) + "." + step.fork(), blocks);
            }
            int count = 1 + step.number() / 3;
            for (int i = 0; i < count; i++) {
                int b = f.pool.extend(relation, fork, true);
                assertEquals(blocks.size(), f.pool.block(b));
                f.stamp(b, relation.relNumber(), blocks.size(), ++version);
                f.pool.markDirty(b);
                f.pool.unlock(b);
                f.pool.release(b);
                blocks.add(version);
            }
        }

        void change(Step step, SmgrRelation relation, ForkNumber fork, List<Integer> blocks) {
            if (blocks == null || blocks.isEmpty()) {
                return;
            }
            int block = step.number() % blocks.size();
            blocks.set(block, ++version);
            if (step.kind() == Kind.CHANGE) {
                f.change(relation, fork, block, version);
                return;
            }
            int b = f.pool.read(relation, fork, block, ReadMode.ZERO_AND_LOCK);
            f.stamp(b, relation.relNumber(), block, version);
            f.pool.markDirty(b);
            f.pool.unlock(b);
            f.pool.release(b);
        }

        /** All existing forks at once, as redo of a truncation does. */
        void truncate(Step step, SmgrRelation relation) {
            ForkNumber[] forks = new ForkNumber[3];
            int[] first = new int[3];
            int count = 0;
            for (int fork = 0; fork < 3; fork++) {
                List<Integer> blocks = blocks(step.relation(), fork);
                if (blocks != null) {
                    forks[count] = ForkNumber.of(fork);
                    first[count++] = Math.min(step.number(), blocks.size());
                }
            }
            f.pool.dropRelationForks(relation, forks, first, count);
            for (int i = 0; i < count; i++) {
                relation.truncate(forks[i], first[i]);
                List<Integer> blocks = blocks(step.relation(), forks[i].ordinal());
                blocks.subList(first[i], blocks.size()).clear();
            }
        }

        void drop(int... relations) {
            SmgrRelation[] handles = new SmgrRelation[relations.length];
            for (int i = 0; i < relations.length; i++) {
                handles[i] = relation(relations[i]);
            }
            f.pool.dropRelations(handles, handles.length);
            f.smgr.unlinkAll(handles, handles.length, true);
            for (int r : relations) {
                for (int fork = 0; fork < 3; fork++) {
                    model.remove(number(r) + "." + fork);
                }
                incarnation[r]++;
            }
        }

        List<PoolInspection.Descriptor> descriptors() {
            return PoolInspection.descriptors(f.pool);
        }

        /** Descriptors without their buffers' numbers, sorted. */
        List<String> pages() {
            return descriptors().stream()
                    .map(d -> d.toString().replaceFirst("buffer=\\d+, ", ""))
                    .sorted()
                    .toList();
        }

        /** Brute force: every descriptor is of a block that exists; a clean page is the file's, a dirty one the model's. */
        void checkAgainstModel() {
            PoolInspection.check(f.pool);
            for (PoolInspection.Descriptor d : descriptors()) {
                List<Integer> blocks = model.get(d.relation().relNumber() + "." + d.fork());
                assertNotNull(blocks, () -> "left of a dropped relation: " + d);
                assertTrue(d.block() < blocks.size(), () -> "left of a truncated fork: " + d);
                assertTrue(d.valid(), () -> "not valid: " + d);
                assertEquals(blocks.get(d.block()), f.version(d.buffer()), d::toString);
                if (!d.dirty()) {
                    ForkNumber fork = ForkNumber.of(d.fork());
                    assertEquals(
                            f.version(d.buffer()),
                            f.versionOnDisk(f.relation(d.relation().relNumber()), fork, d.block()),
                            () -> "clean but not on disk: " + d);
                }
            }
        }

        /** Every page is read back through the pool and, after a checkpoint, from the file. */
        void finish() {
            for (Map.Entry<String, List<Integer>> e : model.entrySet()) {
                String[] key = e.getKey().split("\\.");
                SmgrRelation relation = f.relation(Integer.parseInt(key[0]));
                ForkNumber fork = ForkNumber.of(Integer.parseInt(key[1]));
                assertEquals(e.getValue().size(), relation.nblocks(fork));
                for (int block = 0; block < e.getValue().size(); block++) {
                    assertEquals(e.getValue().get(block), f.readVersion(relation, fork, block));
                }
            }
            f.pool.flushAll();
            assertEquals(0, f.pool.flushAll());
            for (Map.Entry<String, List<Integer>> e : model.entrySet()) {
                String[] key = e.getKey().split("\\.");
                for (int block = 0; block < e.getValue().size(); block++) {
                    assertEquals(
                            e.getValue().get(block),
                            f.versionOnDisk(
                                    f.relation(Integer.parseInt(key[0])), ForkNumber.of(Integer.parseInt(key[1])), block));
                }
            }
        }

        Map<String, Integer> files() {
            Map<String, Integer> contents = new TreeMap<>();
            try (Stream<Path> paths = Files.walk(f.directory)) {
                for (Path p : paths.filter(Files::isRegularFile).toList()) {
                    byte[] bytes = Files.readAllBytes(p);
                    assertEquals(0, bytes.length % Page.SIZE);
                    contents.put(f.directory.relativize(p).toString(), Arrays.hashCode(bytes));
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return contents;
        }

        @Override
        public void close() {
            f.close();
        }
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> paths = Files.walk(directory)) {
            for (Path p : paths.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(p);
            }
        }
    }
}
