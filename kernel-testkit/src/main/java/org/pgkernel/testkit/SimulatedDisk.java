package org.pgkernel.testkit;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongConsumer;
import java.util.function.Supplier;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.testkit.Fault.Effect;

/**
 * A disk in memory that loses what was not synced, and fails as it is told to. What it may do is
 * the fault model in the module's README; SD-1 to SD-6 are what may be relied upon.
 *
 * <p>Calls are counted from 1; faults name calls by their number. A crash ends this object: {@link
 * #restart} gives another one that holds what is found on the medium. Thread-safe: one lock orders
 * all calls, and nothing waits under it; with one thread a run is repeated exactly by its seed and
 * faults.
 *
 * <p>Paths are taken from the root, whether they start with a slash or not; there are no links and
 * no {@code ..}.
 */
public final class SimulatedDisk implements Disk {
    /** The outcome of a crash after which nothing unsynced is there. */
    public static final long LOSE_ALL = 0;

    /** The outcome of a crash after which everything is there. */
    public static final long KEEP_ALL = 1;

    private static final long BY_SEED = -1;
    private static final int EBADF = 9;
    private static final int ENOTDIR = 20;

    private final long seed;
    private final ReentrantLock lock = new ReentrantLock();

    // All below is guarded by the lock.
    private final SimulatedTree tree;
    private final FaultPlan plan;
    private final CallTrace trace = new CallTrace();
    private final long[] counts = new long[DiskCall.values().length];
    private boolean ordered;

    /** Hears of changes; null for nobody. */
    private LongConsumer watcher;

    /** The call under way is a change that the watcher hears of when it is done. */
    private boolean tellAtEnd;

    private long capacitySectors = Long.MAX_VALUE;
    private long usedSectors;

    /** What {@link #droppedPages} was told, or {@link #BY_SEED}. */
    private long droppedPages = BY_SEED;

    /** Why there is nothing here any more; null while there is. */
    private String crashed;

    public SimulatedDisk(long seed) {
        this(seed, new SimulatedTree());
    }

    private SimulatedDisk(long seed, SimulatedTree tree) {
        this.seed = seed;
        this.tree = tree;
        this.plan = new FaultPlan(seed);
        this.usedSectors = SimulatedTree.allocatedSectors(tree.root());
    }

    public long seed() {
        return seed;
    }

    /** Plans faults, besides those that are planned already. Calls are counted from now on. */
    public SimulatedDisk plan(Fault... faults) {
        return plan(List.of(faults));
    }

    public SimulatedDisk plan(List<Fault> faults) {
        locked(() -> faults.forEach(plan::add));
        return this;
    }

    /** Lets each call of a kind fail with a probability, in one of several ways. */
    public SimulatedDisk chance(DiskCall call, double probability, Effect... effects) {
        locked(() -> plan.chance(call, probability, effects));
        return this;
    }

    /** No more faults from here on. */
    public void clearFaults() {
        locked(plan::clear);
    }

    /** Nothing more happens by chance; what is planned stays. */
    void clearChances() {
        locked(plan::clearChances);
    }

    /** What chance did so far, as faults to plan. */
    public List<Fault> faultsByChance() {
        return inside(plan::byChance);
    }

    /** Lets names and lengths land in the order in which they were changed, as a journal would. */
    public SimulatedDisk orderedMetadata(boolean ordered) {
        locked(() -> this.ordered = ordered);
        return this;
    }

    /**
     * Tells each change's number, when {@link #found} gives the disk as a crash at that change
     * would leave it: after the change, but before a sync has happened. The disk's lock is held.
     */
    public SimulatedDisk watch(LongConsumer watcher) {
        locked(() -> this.watcher = watcher);
        return this;
    }

    /** Bytes that may still be stored from now on, in whole sectors. */
    public SimulatedDisk room(long bytes) {
        locked(
                () ->
                        capacitySectors =
                                bytes == Long.MAX_VALUE
                                        ? bytes
                                        : usedSectors + bytes / FileNode.SECTOR);
        return this;
    }

    /**
     * What becomes of the dirty pages of a failed sync: {@link #LOSE_ALL} all are lost and read as
     * before at once; {@link #KEEP_ALL} all are written, in spite of the error; else a seed that is
     * not negative.
     */
    public SimulatedDisk droppedPages(long outcome) {
        assert outcome >= 0;
        locked(() -> droppedPages = outcome);
        return this;
    }

    /** Calls of a kind so far, failed ones included. */
    public long count(DiskCall call) {
        return inside(() -> counts[call.ordinal()]);
    }

    /** The last calls, one a line. */
    public String lastCalls(int most) {
        return inside(() -> trace.text(most));
    }

    /** The machine crashes now, if it has not. */
    public void crash() {
        locked(
                () -> {
                    if (crashed == null) {
                        crashed = "crashed after call #" + counts[DiskCall.ANY.ordinal()];
                    }
                });
    }

    /**
     * The disk as it is found after a crash, which happens now if it has not happened. May be
     * called again, for other outcomes.
     *
     * @param outcome {@link #LOSE_ALL}, {@link #KEEP_ALL}, or a seed that decides for each change
     * @return a disk without faults and with as much room as wished; names still land in order if
     *     they did
     */
    public SimulatedDisk restart(long outcome) {
        crash();
        return found(outcome);
    }

    /** What {@link #restart} would give if the crash came now; this disk goes on. */
    public SimulatedDisk found(long outcome) {
        return inside(() -> then(Chance.mix(seed, outcome), outcome));
    }

    private SimulatedDisk then(long seedThen, long outcome) {
        SimulatedDisk then = new SimulatedDisk(seedThen, tree.afterCrash(outcome, ordered));
        then.ordered = ordered;
        return then;
    }

    /** The disk as it is found in an outcome that depends on the seed. */
    public SimulatedDisk restart() {
        return restart(Chance.mix(seed, counts[DiskCall.ANY.ordinal()]) | 2);
    }

    /** Another disk with the same names and bytes, all of them durable; this one goes on. */
    public SimulatedDisk copy(long seed) {
        return inside(() -> then(seed, KEEP_ALL));
    }

    /** Makes directories with all that is missing above them; durable, not counted. */
    public SimulatedDisk directories(String... paths) {
        locked(
                () -> {
                    List.of(paths).forEach(tree::createDirectories);
                    tree.syncAll();
                });
        return this;
    }

    /** Makes everything durable; not counted. */
    public void syncAll() {
        locked(tree::syncAll);
    }

    /** The bytes of a file as programs see them; null when there is none. Not counted. */
    public byte[] content(String path) {
        return inside(
                () -> {
                    FileNode file = tree.file(path);
                    return file == null ? null : file.content();
                });
    }

    @Override
    public DiskFile openIfExists(String path) {
        return open(path, false, false);
    }

    @Override
    public DiskFile open(String path) {
        DiskFile file = open(path, false, false);
        if (file == null) {
            throw new DiskException("could not open file", path, DiskException.ENOENT);
        }
        return file;
    }

    @Override
    public DiskFile openReadOnly(String path) {
        return open(path, false, true);
    }

    @Override
    public DiskFile openOrCreate(String path) {
        return open(path, true, false);
    }

    @Override
    public DiskFile create(String path) {
        Effect effect = begin(DiskCall.CREATE, path);
        try {
            if (tree.find(path) != null) {
                throw new DiskException("could not create file", path, DiskException.EEXIST);
            }
            return handle(path, tree.createFile(path), false);
        } finally {
            end(effect);
        }
    }

    private DiskFile open(String path, boolean mayCreate, boolean readOnly) {
        lock.lock();
        try {
            refuseIfCrashed();
            FileNode file = tree.file(path);
            boolean creates = mayCreate && file == null;
            Effect effect = begin(creates ? DiskCall.CREATE : DiskCall.OPEN, path);
            try {
                FileNode opened = creates ? tree.createFile(path) : file;
                return opened == null ? null : handle(path, opened, readOnly);
            } finally {
                end(effect);
            }
        } finally {
            lock.unlock();
        }
    }

    private DiskFile handle(String path, FileNode node, boolean readOnly) {
        node.handles++;
        return new SimulatedFile(this, path, node, readOnly);
    }

    @Override
    public boolean exists(String path) {
        Effect effect = begin(DiskCall.LOOK, path);
        try {
            return findForLook(path) != null;
        } finally {
            end(effect);
        }
    }

    @Override
    public boolean isDirectory(String path) {
        Effect effect = begin(DiskCall.LOOK, path);
        try {
            return findForLook(path) instanceof DirectoryNode;
        } finally {
            end(effect);
        }
    }

    @Override
    public List<String> list(String path) {
        Effect effect = begin(DiskCall.LOOK, path);
        try {
            return switch (tree.find(path)) {
                case null -> List.of();
                case FileNode file ->
                        throw new DiskException("could not list directory", path, ENOTDIR);
                case DirectoryNode directory -> new ArrayList<>(directory.seen.keySet());
            };
        } finally {
            end(effect);
        }
    }

    @Override
    public boolean unlink(String path) {
        Effect effect = begin(DiskCall.UNLINK, path);
        try {
            FileNode file = tree.unlink(path);
            release(file);
            return file != null;
        } finally {
            end(effect);
        }
    }

    @Override
    public void rename(String from, String to) {
        Effect effect = begin(DiskCall.RENAME, to);
        try {
            release(tree.rename(from, to));
        } finally {
            end(effect);
        }
    }

    @Override
    public boolean createDirectory(String path) {
        Effect effect = begin(DiskCall.CREATE_DIRECTORY, path);
        try {
            return tree.createDirectory(path);
        } finally {
            end(effect);
        }
    }

    @Override
    public boolean removeDirectory(String path) {
        Effect effect = begin(DiskCall.REMOVE_DIRECTORY, path);
        try {
            return tree.removeDirectory(path);
        } finally {
            end(effect);
        }
    }

    @Override
    public void syncDirectory(String path) {
        Effect effect = begin(DiskCall.SYNC_DIRECTORY, path);
        try {
            switch (tree.find(path)) {
                case null ->
                        throw new DiskException(
                                "could not open directory", path, DiskException.ENOENT);
                case FileNode file -> {}
                case DirectoryNode directory -> {
                    if (effect == null) {
                        tree.sync(directory);
                    }
                }
            }
        } finally {
            end(effect);
        }
    }

    int read(SimulatedFile file, long address, int length, long offset) {
        assert length >= 0 && offset >= 0;
        Effect effect = begin(DiskCall.READ, file.path(), offset, length, file);
        try {
            int wanted = length;
            if (effect == Effect.SHORT) {
                int there = (int) Math.clamp(file.node().size() - offset, 0, length);
                wanted = there == 0 ? 0 : chance().next(there);
            }
            return file.node().read(address, wanted, offset);
        } finally {
            end(effect);
        }
    }

    void write(SimulatedFile file, long address, int length, long offset) {
        assert length >= 0 && offset >= 0;
        Effect effect = begin(DiskCall.WRITE, file.path(), offset, length, file);
        try {
            refuseReadOnly(file, "could not write");
            int wanted = length;
            if (effect != null && effect != Effect.CRASH) {
                int sectors = (length + FileNode.SECTOR - 1) / FileNode.SECTOR;
                wanted = sectors == 0 ? 0 : chance().next(sectors) * FileNode.SECTOR;
            }
            int stored = allocate(file.node(), wanted, offset);
            file.node().write(address, stored, offset);
            if (stored < length && effect != Effect.CRASH) {
                throw new DiskException(
                        "could not write " + length + " bytes at offset " + offset,
                        file.path(),
                        effect == null ? DiskException.ENOSPC : effect.errno());
            }
        } finally {
            end(effect);
        }
    }

    long size(SimulatedFile file) {
        Effect effect = begin(DiskCall.SIZE, file.path(), 0, 0, file);
        try {
            return file.node().size();
        } finally {
            end(effect);
        }
    }

    void truncate(SimulatedFile file, long size) {
        assert size >= 0;
        Effect effect = begin(DiskCall.TRUNCATE, file.path(), size, 0, file);
        try {
            refuseReadOnly(file, "could not truncate to " + size + " bytes");
            long before = file.node().allocatedSectors();
            file.node().truncate(size);
            usedSectors -= before - file.node().allocatedSectors();
        } finally {
            end(effect);
        }
    }

    void sync(SimulatedFile file) {
        Effect effect = begin(DiskCall.SYNC, file.path(), 0, 0, file);
        try {
            if (effect == null) {
                file.node().sync();
            } else if (effect != Effect.IGNORED && effect != Effect.CRASH) {
                file.node().syncFails(dropOutcome());
                throw new DiskException("could not sync", file.path(), effect.errno());
            }
        } finally {
            end(effect);
        }
    }

    void close(SimulatedFile file) {
        lock.lock();
        try {
            if (file.isClosed()) {
                return;
            }
            Effect effect = begin(DiskCall.CLOSE, file.path(), 0, 0, file);
            try {
                file.markClosed();
                file.node().handles--;
                release(file.node());
                if (effect != null && effect != Effect.CRASH) {
                    file.node().syncFails(dropOutcome());
                    throw new DiskException("could not close", file.path(), effect.errno());
                }
            } finally {
                end(effect);
            }
        } finally {
            lock.unlock();
        }
    }

    private Effect begin(DiskCall call, String path) {
        return begin(call, path, 0, 0, null);
    }

    /**
     * Takes the lock, which {@link #end} gives back, and counts the call. Throws, without the lock,
     * when the disk has crashed or the call fails before it does anything.
     *
     * @return what else is to happen, null for nothing
     */
    private Effect begin(DiskCall call, String path, long offset, int length, SimulatedFile file) {
        lock.lock();
        boolean begun = false;
        try {
            refuseIfCrashed();
            long number = ++counts[DiskCall.ANY.ordinal()];
            long ofKind = ++counts[call.ordinal()];
            if (call.changes()) {
                counts[DiskCall.CHANGE.ordinal()]++;
            }
            Effect effect = plan.next(call, path, number, ofKind);
            trace.add(call, path, offset, length, effect);
            if (file != null && file.isClosed()) {
                throw new DiskException("the file is closed", path, EBADF);
            }
            if (effect != null && effect.failsAtOnce(call)) {
                throw new DiskException("told to fail: " + call, path, effect.errno());
            }
            tellAtEnd = call.changes() && !call.syncs();
            if (call.syncs()) {
                tellWatcher();
            }
            begun = true;
            return effect;
        } finally {
            if (!begun) {
                lock.unlock();
            }
        }
    }

    private void end(Effect effect) {
        try {
            if (tellAtEnd) {
                tellAtEnd = false;
                tellWatcher();
            }
            if (effect == Effect.CRASH) {
                crash();
                refuseIfCrashed();
            }
        } finally {
            lock.unlock();
        }
    }

    private void tellWatcher() {
        if (watcher != null) {
            watcher.accept(counts[DiskCall.CHANGE.ordinal()]);
        }
    }

    private void refuseIfCrashed() {
        if (crashed != null) {
            throw new SimulatedCrash(crashed);
        }
    }

    private static void refuseReadOnly(SimulatedFile file, String what) {
        if (file.readOnly()) {
            throw new DiskException(what, file.path(), EBADF);
        }
    }

    private SimulatedNode findForLook(String path) {
        try {
            return tree.find(path);
        } catch (DiskException e) {
            // A file stands where a directory would have to.
            return null;
        }
    }

    private int allocate(FileNode node, int length, long offset) {
        long before = node.allocatedSectors();
        int fits = node.allocate(length, offset, capacitySectors - usedSectors);
        usedSectors += node.allocatedSectors() - before;
        return fits;
    }

    private void release(FileNode node) {
        if (node != null && node.names == 0 && node.handles == 0) {
            usedSectors -= node.allocatedSectors();
        }
    }

    private Chance chance() {
        return new Chance(seed, counts[DiskCall.ANY.ordinal()]);
    }

    private long dropOutcome() {
        return droppedPages != BY_SEED
                ? droppedPages
                : Chance.mix(seed, counts[DiskCall.ANY.ordinal()]) | 2;
    }

    private <T> T inside(Supplier<T> action) {
        lock.lock();
        try {
            return action.get();
        } finally {
            lock.unlock();
        }
    }

    private void locked(Runnable action) {
        lock.lock();
        try {
            action.run();
        } finally {
            lock.unlock();
        }
    }
}
