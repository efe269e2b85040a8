package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.Predicate;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.smgr.SmgrRelation;

/**
 * A pool in which pages of five relations are changed, evicted, dropped and flushed. Around each
 * flush all descriptors are walked: what was dirty of its victims, and nothing else, must have been
 * written, once, in the order of the files, and be clean.
 */
final class FlushRun implements AutoCloseable {
    private static final int OTHER_DB = 6;
    private static final int OTHER_SPC = 20_000;
    private static final int BLOCKS = 30;
    private static final int RELATIONS = 5;
    private static final ForkNumber[] FORKS = {ForkNumber.MAIN, ForkNumber.FSM};

    enum Kind {
        CHANGE,
        READ,
        FLUSH_ONE,
        FLUSH_SOME,
        FLUSH_DATABASE,
        FLUSH_ALL,
        DROP,
        TRUNCATE
    }

    /** What {@code number} means is the kind's. */
    record Step(Kind kind, int relation, int fork, int number) {}

    private static final Kind[] MIX = {
        Kind.CHANGE,
        Kind.CHANGE,
        Kind.CHANGE,
        Kind.CHANGE,
        Kind.CHANGE,
        Kind.CHANGE,
        Kind.READ,
        Kind.READ,
        Kind.FLUSH_ONE,
        Kind.FLUSH_ONE,
        Kind.FLUSH_SOME,
        Kind.FLUSH_SOME,
        Kind.FLUSH_DATABASE,
        Kind.FLUSH_ALL,
        Kind.DROP,
        Kind.TRUNCATE
    };

    static Arbitrary<List<Step>> arbitrary() {
        return Combinators.combine(
                        Arbitraries.of(MIX),
                        Arbitraries.integers().between(0, RELATIONS - 1),
                        Arbitraries.integers().between(0, FORKS.length - 1),
                        Arbitraries.integers().between(0, BLOCKS - 1))
                .as(Step::new)
                .list()
                .ofMinSize(1)
                .ofMaxSize(80);
    }

    static List<Step> random(long seed) {
        Random random = new Random(seed);
        List<Step> steps = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            steps.add(
                    new Step(
                            MIX[random.nextInt(MIX.length)],
                            random.nextInt(RELATIONS),
                            random.nextInt(FORKS.length),
                            random.nextInt(BLOCKS)));
        }
        return steps;
    }

    final PoolFixture f;
    private final SmgrRelation[] relations = new SmgrRelation[RELATIONS];

    /** Files and blocks in the order written. */
    private final List<String> written = new ArrayList<>();

    private int version;

    FlushRun(Path directory, BufferPoolOptions options, DropParts parts) throws IOException {
        f = new PoolFixture(directory, true).pool(options, parts);
        Files.createDirectories(directory.resolve("base/" + OTHER_DB));
        Files.createDirectories(
                directory.resolve("pg_tblspc/" + OTHER_SPC + "/PG_15_202209061/" + PoolFixture.DB));
        relations[0] = f.smgr.open(PoolFixture.SPC, PoolFixture.DB, 1);
        relations[1] = f.smgr.open(PoolFixture.SPC, PoolFixture.DB, 2);
        relations[2] = f.smgr.open(PoolFixture.SPC, PoolFixture.DB, 3);
        // The same number in another database, and in another tablespace.
        relations[3] = f.smgr.open(PoolFixture.SPC, OTHER_DB, 1);
        relations[4] = f.smgr.open(OTHER_SPC, PoolFixture.DB, 1);
        for (SmgrRelation relation : relations) {
            for (ForkNumber fork : FORKS) {
                relation.create(fork, true);
                for (int block = 0; block < BLOCKS; block++) {
                    int buffer = f.pool.extend(relation, fork, true);
                    f.stamp(buffer, relation.relNumber(), block, 0);
                    f.pool.markDirty(buffer);
                    f.pool.unlock(buffer);
                    f.pool.release(buffer);
                }
            }
        }
        f.pool.flushAll(); // a drop goes back to what is in the files
        f.disk.beforeWrite = (path, offset) -> written.add(path + " " + offset / Page.SIZE);
    }

    void apply(Step step) {
        SmgrRelation relation = relations[step.relation];
        ForkNumber fork = FORKS[step.fork];
        switch (step.kind) {
            case CHANGE -> {
                for (int i = 0; i < 4; i++) {
                    f.change(relation, fork, (step.number + i * 3) % BLOCKS, ++version);
                }
            }
            case READ -> {
                for (int block = step.number; block < BLOCKS; block++) {
                    f.pool.release(f.pool.read(relation, fork, block, ReadMode.NORMAL));
                }
            }
            case FLUSH_ONE ->
                    flush(d -> is(d, relation), () -> f.pool.flushRelation(relation), step);
            case FLUSH_SOME -> {
                List<SmgrRelation> some = new ArrayList<>();
                for (int i = 0; i < RELATIONS; i++) {
                    if ((step.number + 1 >> i & 1) != 0) {
                        some.add(relations[i]);
                    }
                }
                SmgrRelation[] array = some.toArray(new SmgrRelation[RELATIONS + 1]);
                flush(
                        d -> some.stream().anyMatch(r -> is(d, r)),
                        () -> f.pool.flushRelations(array, some.size()),
                        step);
            }
            case FLUSH_DATABASE ->
                    flush(
                            d -> d.relation().dbOid() == relation.dbOid(),
                            () -> f.pool.flushDatabase(relation.dbOid()),
                            step);
            case FLUSH_ALL -> flush(d -> true, f.pool::flushAll, step);
            case DROP -> f.pool.dropRelations(new SmgrRelation[] {relation}, 1);
            case TRUNCATE ->
                    f.pool.dropRelationForks(
                            relation, new ForkNumber[] {fork}, new int[] {step.number}, 1);
        }
    }

    private static boolean is(PoolInspection.Descriptor d, SmgrRelation relation) {
        return d.relation().equals(relation.locator());
    }

    private void flush(Predicate<PoolInspection.Descriptor> victim, Runnable flush, Step step) {
        Map<String, Integer> versions = new TreeMap<>();
        List<Integer> othersDirty = new ArrayList<>();
        for (PoolInspection.Descriptor d : PoolInspection.descriptors(f.pool)) {
            if (d.dirty() && victim.test(d)) {
                versions.put(place(d.relation(), d.fork(), d.block()), f.version(d.buffer()));
            } else if (d.dirty()) {
                othersDirty.add(d.buffer());
            }
        }
        written.clear();
        flush.run();
        assertEquals(List.copyOf(versions.keySet()), written.stream().sorted().toList(), "" + step);
        List<Integer> stillDirty = new ArrayList<>();
        for (PoolInspection.Descriptor d : PoolInspection.descriptors(f.pool)) {
            assertTrue(!d.dirty() || !victim.test(d), () -> step + " left dirty " + d);
            if (d.dirty()) {
                stillDirty.add(d.buffer());
            }
            String place = place(d.relation(), d.fork(), d.block());
            if (victim.test(d) && versions.containsKey(place)) {
                assertEquals(
                        versions.get(place),
                        f.versionOnDisk(
                                f.smgr.open(
                                        d.relation().spcOid(),
                                        d.relation().dbOid(),
                                        d.relation().relNumber()),
                                ForkNumber.of(d.fork()),
                                d.block()),
                        place);
            }
        }
        assertEquals(othersDirty, stillDirty, "" + step);
        if (step.kind == Kind.FLUSH_ONE) {
            assertEquals(inOrder(written), written, "front to back");
        }
    }

    private String place(RelFileLocator relation, int fork, int block) {
        return f.directory.resolve(relation.path(ForkNumber.of(fork))) + " " + block;
    }

    /** One relation's forks and blocks: the main fork's name is the shortest. */
    private static List<String> inOrder(List<String> places) {
        List<String> sorted = new ArrayList<>(places);
        sorted.sort(
                (a, b) -> {
                    String[] x = a.split(" ");
                    String[] y = b.split(" ");
                    int c = x[0].compareTo(y[0]);
                    return c != 0
                            ? c
                            : Integer.compare(Integer.parseInt(x[1]), Integer.parseInt(y[1]));
                });
        return sorted;
    }

    @Override
    public void close() {
        f.close();
    }
}
