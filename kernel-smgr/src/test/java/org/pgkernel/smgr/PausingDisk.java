package org.pgkernel.smgr;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.testkit.ForwardingDisk;

/** A disk on which a test can stop one call at a chosen place, or step in there. */
final class PausingDisk extends ForwardingDisk {
    enum At {
        BEFORE_WRITE,
        AFTER_WRITE,
        AFTER_SIZE,
        BEFORE_TRUNCATE,
        AFTER_TRUNCATE,
        BEFORE_UNLINK
    }

    /** One stopped call. */
    static final class Pause implements Runnable {
        private final CountDownLatch reached = new CountDownLatch(1);
        private final CountDownLatch released = new CountDownLatch(1);

        @Override
        public void run() {
            reached.countDown();
            await(released);
        }

        void awaitReached() {
            await(reached);
        }

        void release() {
            released.countDown();
        }

        private static void await(CountDownLatch latch) {
            try {
                if (!latch.await(20, TimeUnit.SECONDS)) {
                    throw new AssertionError("waited in vain");
                }
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }

    private final AtomicReferenceArray<Runnable> hooks =
            new AtomicReferenceArray<>(At.values().length);

    PausingDisk(Disk disk) {
        super(disk);
    }

    /** Runs {@code step} at the next call that comes there, and not again. */
    void once(At at, Runnable step) {
        hooks.set(at.ordinal(), step);
    }

    Pause pause(At at) {
        Pause pause = new Pause();
        once(at, pause);
        return pause;
    }

    private void at(At at) {
        Runnable step = hooks.getAndSet(at.ordinal(), null);
        if (step != null) {
            step.run();
        }
    }

    @Override
    public boolean unlink(String path) {
        at(At.BEFORE_UNLINK);
        return super.unlink(path);
    }

    @Override
    protected DiskFile opened(DiskFile file) {
        return new ForwardingFile(file) {
            @Override
            public void write(long address, int length, long offset) {
                at(At.BEFORE_WRITE);
                super.write(address, length, offset);
                at(At.AFTER_WRITE);
            }

            @Override
            public long size() {
                long size = super.size();
                at(At.AFTER_SIZE);
                return size;
            }

            @Override
            public void truncate(long size) {
                at(At.BEFORE_TRUNCATE);
                super.truncate(size);
                at(At.AFTER_TRUNCATE);
            }
        };
    }
}
