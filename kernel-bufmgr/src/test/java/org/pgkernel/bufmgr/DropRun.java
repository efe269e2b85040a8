package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;

/**
 * A pool with its files under one strategy, and a model of what both should hold: what {@link
 * DropStep}s do to them.
 */
final class DropRun implements AutoCloseable {
    private static final int OTHER_DB = 6;

    final PoolFixture f;
    private final SizePolicy policy;

    /** What the strategy keeps is checked too; the mutants must show without. */
    boolean inspectTracker = true;

    /** Version of each block of each fork that exists. */
    private final Map<String, List<Integer>> model = new HashMap<>();

    /** Pages that must be in the pool, as {@code key#block}, as long as they all fit in. */
    private final Set<String> resident = new HashSet<>();

    private final int[] incarnation = new int[DropStep.RELATIONS];
    private int version;
    private boolean inRecovery = true;
    private boolean evicting;
    private int checks;

    DropRun(Path directory, BufferPoolOptions options, SizePolicy policy, DropParts parts) {
        this.policy = policy;
        f = new PoolFixture(directory, true, policy).pool(options, parts);
    }

    /**
     * True once more pages were wanted than there are buffers: then it is up to the clock which are
     * there.
     */
    boolean evicting() {
        return evicting;
    }

    private SmgrRelation relation(int r) {
        return f.smgr.open(PoolFixture.SPC, db(r), number(r));
    }

    /**
     * The last relation is of another database, the two before have the same number in different
     * tablespaces' databases.
     */
    private static int db(int r) {
        return r == DropStep.RELATIONS - 1 ? OTHER_DB : PoolFixture.DB;
    }

    /**
     * A dropped relation comes back under another number, as it would. Relation 0 and the last
     * share theirs at first.
     */
    private int number(int r) {
        return 1000 * (r % (DropStep.RELATIONS - 1) + 1) + incarnation[r];
    }

    private String key(int r, int fork) {
        return db(r) + "/" + number(r) + "." + fork;
    }

    private List<Integer> blocks(int r, int fork) {
        return model.get(key(r, fork));
    }

    private SmgrRelation relationOf(String key) {
        return f.smgr.open(
                PoolFixture.SPC,
                Integer.parseInt(key.substring(0, key.indexOf('/'))),
                Integer.parseInt(key.substring(key.indexOf('/') + 1, key.indexOf('.'))));
    }

    private static ForkNumber forkOf(String key) {
        return ForkNumber.of(Integer.parseInt(key.substring(key.indexOf('.') + 1)));
    }

    private void nowResident(String key, int block) {
        resident.add(key + "#" + block);
        evicting |= resident.size() > f.pool.nbuffers();
    }

    void apply(DropStep step) {
        int r = step.relation();
        ForkNumber fork = ForkNumber.of(step.fork());
        List<Integer> blocks = blocks(r, step.fork());
        boolean some = blocks != null && !blocks.isEmpty();
        switch (step.kind()) {
            case EXTEND -> extend(step, relation(r), fork);
            case CHANGE, RESTORE -> {
                if (some) {
                    change(step, relation(r), fork, blocks);
                }
            }
            case READ -> {
                if (some) {
                    int block = step.number() % blocks.size();
                    assertEquals(blocks.get(block), f.readVersion(relation(r), fork, block));
                    nowResident(key(r, step.fork()), block);
                }
            }
            case FLUSH -> f.pool.flushAll();
            case TRUNCATE -> truncate(step, relation(r));
            case DROP -> drop(r);
            case DROP_BATCH ->
                    drop(
                            r,
                            (r + 1 + step.number() % (DropStep.RELATIONS - 1))
                                    % DropStep.RELATIONS);
            case FORGET_SIZES -> relation(r).forgetSizes();
            case RECOVERY -> {
                inRecovery = !inRecovery;
                f.smgr.inRecovery(inRecovery);
            }
            case DROP_DATABASE -> {
                f.pool.flushAll(); // nothing may be lost: the files stay
                f.pool.dropDatabase(db(r));
                resident.removeIf(page -> page.startsWith(db(r) + "/"));
            }
            case EVICT_TAIL -> evictAll(step.fork(), 1 + step.number() % 4, 0);
            case EVICT_BUT_LAST -> evictAll(step.fork(), 0, 1);
            case STALE_SIZE -> {
                if (blocks != null && !inRecovery && policy == SizePolicy.RECOVERY_ONLY) {
                    extendBehindOurBack(r, step.fork(), blocks);
                }
            }
            case GHOST ->
                    ghost(
                            r,
                            step.fork(),
                            0xFFFFFFFE - step.number() * (step.number() % 3 == 0 ? 1 : 50_000_000));
        }
    }

    private void extend(DropStep step, SmgrRelation relation, ForkNumber fork) {
        String key = key(step.relation(), step.fork());
        List<Integer> blocks = model.get(key);
        if (blocks == null) {
            relation.create(fork, true);
            blocks = new ArrayList<>();
            model.put(key, blocks);
        }
        int count = 1 + (step.number() % 3 == 0 ? step.number() : step.number() % 4);
        for (int i = 0; i < count; i++) {
            int b = f.pool.extend(relation, fork, true);
            assertEquals(blocks.size(), f.pool.block(b));
            f.stamp(b, relation.relNumber(), blocks.size(), ++version);
            f.pool.markDirty(b);
            f.pool.unlock(b);
            f.pool.release(b);
            nowResident(key, blocks.size());
            blocks.add(version);
        }
    }

    private void change(
            DropStep step, SmgrRelation relation, ForkNumber fork, List<Integer> blocks) {
        int block = step.number() % blocks.size();
        blocks.set(block, ++version);
        nowResident(key(step.relation(), step.fork()), block);
        if (step.kind() == DropStep.Kind.CHANGE) {
            f.change(relation, fork, block, version);
            return;
        }
        int b = f.pool.read(relation, fork, block, ReadMode.ZERO_AND_LOCK);
        f.stamp(b, relation.relNumber(), block, version);
        f.pool.markDirty(b);
        f.pool.unlock(b);
        f.pool.release(b);
    }

    /** All existing forks at once, as redo of a truncation does; or the step's alone. */
    private void truncate(DropStep step, SmgrRelation relation) {
        ForkNumber[] forks = new ForkNumber[DropStep.FORKS];
        int[] first = new int[DropStep.FORKS];
        int count = 0;
        for (int fork = 0; fork < DropStep.FORKS; fork++) {
            List<Integer> blocks = blocks(step.relation(), fork);
            if (blocks != null && (step.number() % 3 != 0 || fork == step.fork())) {
                forks[count] = ForkNumber.of(fork);
                first[count++] = Math.min(step.number() % 13, blocks.size());
            }
        }
        f.pool.dropRelationForks(relation, forks, first, count);
        for (int i = 0; i < count; i++) {
            relation.truncate(forks[i], first[i]);
            List<Integer> blocks = blocks(step.relation(), forks[i].ordinal());
            blocks.subList(first[i], blocks.size()).clear();
            int from = first[i];
            String pages = key(step.relation(), forks[i].ordinal()) + "#";
            resident.removeIf(
                    page ->
                            page.startsWith(pages)
                                    && Integer.compareUnsigned(
                                                    Integer.parseInt(
                                                            page.substring(pages.length())),
                                                    from)
                                            >= 0);
        }
    }

    private void drop(int... relations) {
        SmgrRelation[] handles = new SmgrRelation[relations.length];
        for (int i = 0; i < relations.length; i++) {
            handles[i] = relation(relations[i]);
        }
        f.pool.dropRelations(handles, handles.length);
        f.smgr.unlinkAll(handles, handles.length, true);
        for (int r : relations) {
            for (int fork = 0; fork < DropStep.FORKS; fork++) {
                String key = key(r, fork);
                model.remove(key);
                resident.removeIf(page -> page.startsWith(key + "#"));
            }
            incarnation[r]++;
        }
    }

    /** Of each relation all but some first and last pages. */
    private void evictAll(int fork, int keepFirst, int keepLast) {
        for (int r = 0; r < DropStep.RELATIONS; r++) {
            List<Integer> blocks = blocks(r, fork);
            for (int block = keepFirst;
                    blocks != null && block < blocks.size() - keepLast;
                    block++) {
                evict(r, fork, block);
            }
        }
    }

    /** As the clock would do it, but this page now. */
    private void evict(int r, int fork, int block) {
        SmgrRelation relation = relation(r);
        int b =
                f.pool.allocator.probe(
                        relation.spcOid(), relation.dbOid(), relation.relNumber(), fork, block);
        if (b < 0) {
            return;
        }
        b = f.pool.read(relation, ForkNumber.of(fork), block, ReadMode.NORMAL);
        f.pool.lockShared(b);
        f.pool.flushOne(b);
        f.pool.unlock(b);
        f.pool.release(b);
        assertTrue(f.pool.allocator.invalidate(b, f.pool.descriptors.lockHeader(b)));
        resident.remove(key(r, fork) + "#" + block);
    }

    private void extendBehindOurBack(int r, int fork, List<Integer> blocks) {
        PosixDisk disk = new PosixDisk();
        SyncRequests syncs = new SyncRequests(disk, f.directory.toString());
        try (Arena arena = Arena.ofConfined();
                StorageManager other =
                        new StorageManager(
                                disk,
                                f.directory.toString(),
                                StorageManager.SEGMENT_BLOCKS,
                                SizePolicy.RECOVERY_ONLY,
                                syncs)) {
            MemorySegment page = arena.allocate(Page.SIZE, 4096);
            UnsafeBuffer view = new UnsafeBuffer(page.address(), Page.SIZE);
            Page.init(view, 0);
            view.putInt(4096, number(r));
            view.putInt(4100, blocks.size());
            view.putInt(4104, ++version);
            if (f.pool.checksums()) {
                Page.setChecksum(view, org.pgkernel.base.PageChecksum.compute(view, blocks.size()));
            }
            other.open(PoolFixture.SPC, db(r), number(r))
                    .extend(ForkNumber.of(fork), blocks.size(), page.address(), true);
        }
        blocks.add(version);
        int block = blocks.size() - 1;
        assertEquals(version, f.readVersion(relation(r), ForkNumber.of(fork), block));
        nowResident(key(r, fork), block);
    }

    /** Zeros that no file has; never dirty. */
    private void ghost(int r, int fork, int block) {
        int b = f.pool.read(relation(r), ForkNumber.of(fork), block, ReadMode.ZERO_AND_LOCK);
        f.pool.unlock(b);
        f.pool.release(b);
        nowResident(key(r, fork), block);
    }

    private List<PoolInspection.Descriptor> descriptors() {
        return PoolInspection.descriptors(f.pool);
    }

    /** Descriptors without their buffers' numbers. */
    Set<PoolInspection.Descriptor> pages() {
        Set<PoolInspection.Descriptor> pages = new HashSet<>();
        for (PoolInspection.Descriptor d : descriptors()) {
            pages.add(
                    new PoolInspection.Descriptor(
                            -1,
                            d.relation(),
                            d.fork(),
                            d.block(),
                            d.refcount(),
                            d.usageCount(),
                            d.valid(),
                            d.dirty(),
                            d.ioError()));
        }
        return pages;
    }

    /**
     * Brute force: every descriptor is of a page that is there; a clean page is the file's, a dirty
     * one the model's; none is missing.
     */
    void check() {
        if (inspectTracker) {
            PoolInspection.check(f.pool);
        } else {
            PoolInspection.checkDescriptors(f.pool);
        }
        checks++;
        Set<String> found = new HashSet<>();
        for (PoolInspection.Descriptor d : descriptors()) {
            String key = d.relation().dbOid() + "/" + d.relation().relNumber() + "." + d.fork();
            assertTrue(found.add(key + "#" + d.block()));
            assertTrue(
                    resident.contains(key + "#" + d.block()),
                    () -> "left of a dropped relation: " + d);
            assertTrue(d.valid(), () -> "not valid: " + d);
            if (d.block() < 0 || model.get(key) == null) {
                assertTrue(d.block() < 0 && !d.dirty(), () -> "left of a dropped relation: " + d);
                continue;
            }
            List<Integer> blocks = model.get(key);
            assertTrue(d.block() < blocks.size(), () -> "left of a truncated fork: " + d);
            assertEquals(blocks.get(d.block()), f.version(d.buffer()), d::toString);
            if (!d.dirty() && checks % 10 == 0) { // opens files
                assertEquals(
                        f.version(d.buffer()),
                        f.versionOnDisk(relationOf(key), forkOf(key), d.block()),
                        () -> "clean but not on disk: " + d);
            }
        }
        if (!evicting) {
            assertEquals(resident, found, "pages lost from the pool");
        }
    }

    /** Every page is read back through the pool and, after a checkpoint, from the file. */
    void finish() {
        for (Map.Entry<String, List<Integer>> e : model.entrySet()) {
            SmgrRelation relation = relationOf(e.getKey());
            ForkNumber fork = forkOf(e.getKey());
            assertEquals(e.getValue().size(), relation.nblocks(fork));
            for (int block = 0; block < e.getValue().size(); block++) {
                assertEquals(e.getValue().get(block), f.readVersion(relation, fork, block));
                nowResident(e.getKey(), block);
            }
        }
        f.pool.flushAll();
        assertEquals(0, f.pool.flushAll());
        for (Map.Entry<String, List<Integer>> e : model.entrySet()) {
            for (int block = 0; block < e.getValue().size(); block++) {
                assertEquals(
                        e.getValue().get(block),
                        f.versionOnDisk(relationOf(e.getKey()), forkOf(e.getKey()), block));
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

    static void delete(Path directory) throws IOException {
        try (Stream<Path> paths = Files.walk(directory)) {
            for (Path p : paths.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(p);
            }
        }
    }
}
