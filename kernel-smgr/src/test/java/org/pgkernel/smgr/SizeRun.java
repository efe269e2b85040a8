package org.pgkernel.smgr;

import java.util.List;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Supplier;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.testkit.ForwardingDisk;

/**
 * One relation that threads change, one at a time as the access rules want it, while others ask its
 * size, close its handle and forget what is remembered. Every answer must be a size that the
 * relation had between the question and the answer.
 *
 * <p>The model is the list of sizes in their order, with two marks: sizes up to {@code done} are in
 * the files, sizes up to {@code begun} may be. A change that may fail, or that takes the file away
 * in passing, has no such list; answers that fall into it are not judged, but what stays behind is.
 */
final class SizeRun {
    /** How relation, policy and mode go together. */
    enum Setting {
        SHARED_PRIMARY(SizePolicy.SHARED, false),
        SHARED_REDO(SizePolicy.SHARED, true),
        FAITHFUL_PRIMARY(SizePolicy.RECOVERY_ONLY, false),
        FAITHFUL_REDO(SizePolicy.RECOVERY_ONLY, true);

        final SizePolicy policy;
        final boolean redo;

        Setting(SizePolicy policy, boolean redo) {
            this.policy = policy;
            this.redo = redo;
        }
    }

    enum Kind {
        EXTEND,
        ZERO_EXTEND,
        WRITE_PAST_THE_END,
        TRUNCATE,
        MAKE_ANEW,
        CLOSE,
        OTHER_MODE
    }

    /**
     * @param amount blocks to add, to leave, or to leap over
     * @param fails the first, or second, call that changes a file fails half-way
     */
    record Step(Kind kind, int amount, int fails) {}

    private static final int SEGMENT = 4;
    private static final int MOST = 40;
    private static final int MOST_CHANGES = 1000;
    private static final long SOME_ADDRESS = BlockNumber.PAGE_SIZE;
    private static final ForkNumber MAIN = ForkNumber.MAIN;

    private final Setting setting;
    private final LengthDisk files = new LengthDisk();
    private final FailingDisk disk = new FailingDisk(files);
    private final StorageManager manager;

    /** Another process's view of the directory, for changes outside recovery. */
    private final StorageManager stranger;

    private final AtomicIntegerArray sizes = new AtomicIntegerArray(MOST_CHANGES);
    private final AtomicReferenceArray<String> changes = new AtomicReferenceArray<>(MOST_CHANGES);
    private volatile int begun;
    private volatile int done;

    /** Odd while a change runs whose course is not told beforehand. Changed under {@link #lock}. */
    private volatile int doubts;

    private volatile boolean inRecovery;
    private volatile boolean stop;
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    /** The relation's lock: one changer at a time. */
    private final Object lock = new Object();

    SizeRun(Setting setting, Supplier<RememberedSize> remembered) {
        this.setting = setting;
        manager = manager(setting.policy, remembered);
        stranger = manager(SizePolicy.RECOVERY_ONLY, RememberedSize::new);
        inRecovery = setting.redo;
        manager.inRecovery(setting.redo);
        relation().create(MAIN, setting.redo);
    }

    private StorageManager manager(SizePolicy policy, Supplier<RememberedSize> remembered) {
        return new StorageManager(
                disk, "/data", SEGMENT, policy, new SyncRequests(disk, "/data"), 100, remembered);
    }

    private SmgrRelation relation() {
        return manager.open(1663, 5, 100);
    }

    /**
     * @throws AssertionError when an answer was wrong
     */
    void run(List<List<Step>> changers) throws InterruptedException {
        Thread[] threads = new Thread[changers.size() + 2];
        for (int i = 0; i < changers.size(); i++) {
            List<Step> steps = changers.get(i);
            threads[i] = new Thread(() -> guarded(() -> steps.forEach(this::change)));
        }
        for (int i = changers.size(); i < threads.length; i++) {
            boolean forgets = i % 2 == 0;
            threads[i] = new Thread(() -> guarded(() -> ask(forgets)));
        }
        for (Thread thread : threads) {
            thread.start();
        }
        for (int i = 0; i < changers.size(); i++) {
            threads[i].join();
        }
        stop = true;
        for (int i = changers.size(); i < threads.length; i++) {
            threads[i].join();
        }
        if (failure.get() != null) {
            throw new AssertionError(setting + ": " + failure.get().getMessage(), failure.get());
        }
        judge("at rest", remembered(), done, begun);
        int inFiles = files.forkBlocks("/data/base/5/100", SEGMENT);
        require(relation().nblocks(MAIN) == inFiles, "size at rest is not the files' " + inFiles);
        manager.close();
        stranger.close();
    }

    private void guarded(Runnable work) {
        try {
            work.run();
        } catch (Throwable e) {
            failure.compareAndSet(null, e);
        }
    }

    private void ask(boolean forgets) {
        for (int i = 0; !stop && failure.get() == null; i++) {
            int doubtsBefore = doubts;
            int from = done;
            int change = begun;
            int answer;
            try {
                answer = i % 2 == 0 ? remembered() : relation().nblocks(MAIN);
            } catch (DiskException e) {
                if (doubtsBefore == doubts && doubtsBefore % 2 == 0) {
                    throw new AssertionError("SMGR-4 no file:" + history(from, begun), e);
                }
                continue;
            }
            int to = begun;
            if (doubtsBefore == doubts && doubtsBefore % 2 == 0) {
                judge("beside others", answer, from, to);
                requireBlocks(answer, change);
            }
            if (i % 5 == 4) {
                if (forgets) {
                    relation().forgetSizes();
                } else {
                    manager.close(relation());
                }
            }
        }
    }

    /** What is remembered if it calls itself accurate, -1 otherwise. */
    private int remembered() {
        long size = relation().rememberedSize(MAIN);
        return ForkSize.isAccurate(size) ? ForkSize.blocks(size) : -1;
    }

    private void judge(String when, int answer, int from, int to) {
        if (answer >= 0) {
            int at = from;
            while (at <= to && sizes.get(at) != answer) {
                at++;
            }
            require(at <= to, when + ": " + answer + ", it was" + history(from, to));
            require(
                    setting.policy == SizePolicy.SHARED || inRecovery || !accurate(),
                    when + ": proof outside recovery");
        }
    }

    /** While blocks are added, and no more than that, nobody is told of one that is not there. */
    private void requireBlocks(int answer, int change) {
        int inFiles = files.forkBlocks("/data/base/5/100", SEGMENT);
        boolean adding = change > 0 && sizes.get(change) >= sizes.get(change - 1);
        if (adding && doubts % 2 == 0 && change == begun) {
            require(
                    answer <= inFiles,
                    answer + " while there were " + inFiles + ":" + history(change, change));
        }
    }

    private String history(int from, int to) {
        StringBuilder history = new StringBuilder();
        for (int i = Math.max(0, from - 3); i <= to; i++) {
            history.append(i == from ? " |" : "").append(" ").append(sizes.get(i));
            history.append(" ").append(changes.get(i));
        }
        return history.toString();
    }

    private boolean accurate() {
        int before = doubts;
        boolean accurate = ForkSize.isAccurate(relation().rememberedSize(MAIN));
        return accurate && before % 2 == 0 && before == doubts;
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError("SMGR-4 " + what);
        }
    }

    private void change(Step step) {
        if (failure.get() != null) {
            return;
        }
        synchronized (lock) {
            int size = sizes.get(done);
            switch (step.kind) {
                case EXTEND -> {
                    if (size < MOST) {
                        certainOrNot(step, size + 1, () -> extendWith(manager(step), size));
                    }
                }
                case ZERO_EXTEND -> {
                    if (size + step.amount < MOST) {
                        certainOrNot(
                                step,
                                size + step.amount,
                                () -> relation().zeroExtend(MAIN, size, step.amount, false));
                    }
                }
                case WRITE_PAST_THE_END -> {
                    // Within the segment: across it the file passes through sizes of its own.
                    if (inRecovery && size < MOST && (size % SEGMENT) + 1 < SEGMENT) {
                        certainOrNot(
                                step,
                                size + 2,
                                () -> relation().write(MAIN, size + 1, SOME_ADDRESS, false));
                    }
                }
                case TRUNCATE -> {
                    if (step.amount < size) {
                        certainOrNot(
                                step, step.amount, () -> relation().truncate(MAIN, step.amount));
                    }
                }
                case MAKE_ANEW -> uncertain(step, this::makeAnew);
                case CLOSE -> manager.close(relation());
                case OTHER_MODE -> {
                    if (setting.policy == SizePolicy.RECOVERY_ONLY) {
                        uncertain(
                                step,
                                () -> {
                                    inRecovery = !inRecovery;
                                    manager.inRecovery(inRecovery);
                                });
                    }
                }
            }
        }
    }

    /** Outside recovery, without shared sizes, every third extension is another process's. */
    private StorageManager manager(Step step) {
        boolean strange = setting.policy == SizePolicy.RECOVERY_ONLY && !inRecovery;
        return strange && step.amount % 3 == 0 ? stranger : manager;
    }

    private static void extendWith(StorageManager manager, int size) {
        manager.open(1663, 5, 100).extend(MAIN, size, SOME_ADDRESS, false);
    }

    private void makeAnew() {
        manager.unlinkAll(new SmgrRelation[] {relation()}, 1, true);
        stranger.closeAll();
        relation().create(MAIN, setting.redo);
    }

    private void certainOrNot(Step step, int next, Runnable change) {
        if (step.fails > 0) {
            disk.failInThisThread(step.fails);
            uncertain(step, change);
            disk.failInThisThread(0);
        } else {
            sizes.set(begun + 1, next);
            changes.set(begun + 1, step.toString());
            begun++;
            change.run();
            done++;
        }
    }

    private void uncertain(Step step, Runnable change) {
        doubts++;
        try {
            change.run();
        } catch (DiskException e) {
            require(e.getMessage().contains("told to fail"), e.getMessage());
        }
        changes.set(begun + 1, step.toString());
        sizes.set(begun + 1, files.forkBlocks("/data/base/5/100", SEGMENT));
        begun++;
        done++;
        doubts++;
    }

    /** Gives way at random places, and fails where a thread told it to. */
    private static final class FailingDisk extends ForwardingDisk {
        private final ThreadLocal<int[]> left = ThreadLocal.withInitial(() -> new int[1]);

        FailingDisk(Disk disk) {
            super(disk);
        }

        /** This thread's {@code count}th change of a file from now on fails half-way; 0: none. */
        void failInThisThread(int count) {
            left.get()[0] = count;
        }

        private boolean failsNow() {
            int[] mine = left.get();
            return mine[0] > 0 && --mine[0] == 0;
        }

        @Override
        protected DiskFile opened(DiskFile file) {
            return new ForwardingFile(file) {
                @Override
                public void write(long address, int length, long offset) {
                    Thread.yield();
                    if (failsNow()) {
                        super.write(address, length / 2, offset);
                        throw new DiskException("told to fail", path(), DiskException.ENOSPC);
                    }
                    super.write(address, length, offset);
                    Thread.yield();
                }

                @Override
                public void truncate(long size) {
                    if (failsNow()) {
                        throw new DiskException("told to fail", path(), 5);
                    }
                    super.truncate(size);
                    Thread.yield();
                }

                @Override
                public long size() {
                    long size = super.size();
                    Thread.yield();
                    return size;
                }
            };
        }
    }
}
