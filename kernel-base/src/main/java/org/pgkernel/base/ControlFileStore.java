package org.pgkernel.base;

import java.time.InstantSource;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;

/**
 * The control file of an open cluster: one image, changed and written whole under one lock, the
 * file kept open. Redo writes it once for each dropped relation, so {@link #lock}, {@link
 * #current}, {@link #write}, {@link #unlock} allocate nothing.
 *
 * <p>A failed write or sync stops the store: what is on disk is then unknown, and every later call
 * that would write refuses. The lock ranks last ({@link LockRank#CONTROL_FILE}): no other lock of
 * the kernel is taken under it. (PostgreSQL: ControlFileLock, UpdateControlFile, xlog.c.)
 */
public final class ControlFileStore implements AutoCloseable {
    private final DiskFile file;
    private final InstantSource clock;
    private final boolean durable;
    private final ReentrantLock lock = new ReentrantLock();

    /** Changed under the lock. */
    private final ControlFile current;

    /** What the file holds, for undoing a change that was given up; under the lock. */
    private final ControlFile written = new ControlFile();

    /** Why nothing more may be written, null while all is well; under the lock. */
    private DiskException failure;

    private ControlFileStore(
            ControlFile current, DiskFile file, InstantSource clock, boolean durable) {
        this.current = current;
        this.file = file;
        this.clock = clock;
        this.durable = durable;
        written.copyFrom(current);
    }

    /**
     * Reads and checks the control file (see {@link ControlFile#read}) and keeps it open for
     * writing; writes nothing yet.
     *
     * @param durable false to leave out the syncs (a cluster that may be lost, as with {@code
     *     fsync=off})
     */
    public static ControlFileStore open(
            Disk disk, String dataDir, InstantSource clock, boolean durable) {
        ControlFile control = ControlFile.read(disk, dataDir);
        return new ControlFileStore(control, disk.open(ControlFile.path(dataDir)), clock, durable);
    }

    public void lock() {
        lock.lock();
        assert LockRank.CONTROL_FILE.enter();
    }

    public void unlock() {
        assert LockRank.CONTROL_FILE.leave();
        lock.unlock();
    }

    /** The image; the caller holds the lock for as long as it looks or changes. */
    public ControlFile current() {
        assert lock.isHeldByCurrentThread() : "BASE-6";
        return current;
    }

    /**
     * Writes the image with the time of now and makes it durable. The caller holds the lock.
     *
     * @throws KernelStoppedException when this or an earlier write failed
     */
    public void write() {
        assert lock.isHeldByCurrentThread() : "BASE-6";
        // BASE-7
        if (failure != null) {
            throw stopped();
        }
        try {
            current.write(file, clock);
            if (durable) {
                // The size never changes, so the data is all there is to sync.
                file.dataSync();
            }
        } catch (DiskException e) {
            failure = e;
            throw stopped();
        }
        written.copyFrom(current);
    }

    /**
     * Applies a change and writes it, under the lock. If {@code change} throws, the image goes back
     * to what the file holds.
     */
    public void update(Consumer<ControlFile> change) {
        lock();
        try {
            try {
                change.accept(current);
            } catch (Throwable t) {
                current.copyFrom(written);
                throw t;
            }
            write();
        } finally {
            unlock();
        }
    }

    /** Copies the image, taking the lock. */
    public void copyTo(ControlFile to) {
        lock();
        try {
            to.copyFrom(current);
        } finally {
            unlock();
        }
    }

    /** A copy of the image, taking the lock; allocates. */
    public ControlFile snapshot() {
        ControlFile copy = new ControlFile();
        copyTo(copy);
        return copy;
    }

    /** Closes the file; the image stays readable. */
    @Override
    public void close() {
        file.close();
    }

    private KernelStoppedException stopped() {
        return new KernelStoppedException(
                "the control file could not be written, the kernel stops: " + failure.getMessage(),
                failure);
    }
}
