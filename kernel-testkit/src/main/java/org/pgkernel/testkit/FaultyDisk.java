package org.pgkernel.testkit;

import java.util.List;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;

/**
 * A disk that counts its calls, lets a test step in before and after each, and has faults: calls
 * that fail by name, writes that run out of room, files that end too early.
 *
 * <p>A {@link Hook} may note, wait, change the file by other means, or throw; one that throws
 * before the call keeps it from happening. A hook may replace or remove hooks, itself included.
 * Thread-safe.
 */
public final class FaultyDisk extends ForwardingDisk {
    /** Kinds of calls. {@code LOOK} is every call on a path but those that have their own kind. */
    public enum Call {
        OPEN,
        READ,
        WRITE,
        SYNC,
        CLOSE,
        UNLINK,
        RENAME,
        SYNC_DIRECTORY,
        LOOK
    }

    /** What a test does around a call. */
    @FunctionalInterface
    public interface Hook {
        /**
         * @param path the file's, of a rename the new name
         * @param offset in bytes, 0 where the call has none
         */
        void on(String path, long offset);
    }

    private static final int CALLS = Call.values().length;

    private final AtomicReferenceArray<Hook> before = new AtomicReferenceArray<>(CALLS);
    private final AtomicReferenceArray<Hook> after = new AtomicReferenceArray<>(CALLS);
    private final AtomicIntegerArray counts = new AtomicIntegerArray(CALLS);
    private final AtomicLong room = new AtomicLong(Long.MAX_VALUE);
    private volatile long readableBytes = Long.MAX_VALUE;

    public FaultyDisk(Disk disk) {
        super(disk);
    }

    /** Runs {@code hook} before each call of the kind, in place of an earlier one. */
    public void before(Call call, Hook hook) {
        before.set(call.ordinal(), hook);
    }

    /** Runs {@code hook} after each call of the kind that succeeded. */
    public void after(Call call, Hook hook) {
        after.set(call.ordinal(), hook);
    }

    /**
     * Makes each call of the kind fail, before anything happens, on paths that hold {@code part}.
     */
    public void fail(Call call, String part, int errno) {
        before(
                call,
                (path, offset) -> {
                    if (path.contains(part)) {
                        throw new DiskException("told to fail", path, errno);
                    }
                });
    }

    /** Removes the hooks and the failure of a kind. */
    public void clear(Call call) {
        before.set(call.ordinal(), null);
        after.set(call.ordinal(), null);
    }

    /** How many calls of the kind were made, the failed ones included. */
    public int count(Call call) {
        return counts.get(call.ordinal());
    }

    /**
     * Bytes that writes may still store, in all files together; the write past it stores what fits
     * and reports a full disk.
     */
    public void room(long bytes) {
        room.set(bytes);
    }

    /** Reads end at this offset at the latest, as if each file did. */
    public void readableBytes(long bytes) {
        readableBytes = bytes;
    }

    private void begin(Call call, String path, long offset) {
        counts.incrementAndGet(call.ordinal());
        run(before.get(call.ordinal()), path, offset);
    }

    private void end(Call call, String path, long offset) {
        run(after.get(call.ordinal()), path, offset);
    }

    private static void run(Hook hook, String path, long offset) {
        if (hook != null) {
            hook.on(path, offset);
        }
    }

    @Override
    protected DiskFile opened(DiskFile file) {
        end(Call.OPEN, file.path(), 0);
        return new FaultyFile(file);
    }

    @Override
    public DiskFile openIfExists(String path) {
        begin(Call.OPEN, path, 0);
        return super.openIfExists(path);
    }

    @Override
    public DiskFile open(String path) {
        begin(Call.OPEN, path, 0);
        return super.open(path);
    }

    @Override
    public DiskFile openReadOnly(String path) {
        begin(Call.OPEN, path, 0);
        return super.openReadOnly(path);
    }

    @Override
    public DiskFile create(String path) {
        begin(Call.OPEN, path, 0);
        return super.create(path);
    }

    @Override
    public DiskFile openOrCreate(String path) {
        begin(Call.OPEN, path, 0);
        return super.openOrCreate(path);
    }

    @Override
    public boolean exists(String path) {
        begin(Call.LOOK, path, 0);
        return super.exists(path);
    }

    @Override
    public boolean unlink(String path) {
        begin(Call.UNLINK, path, 0);
        boolean existed = super.unlink(path);
        end(Call.UNLINK, path, 0);
        return existed;
    }

    @Override
    public void rename(String from, String to) {
        begin(Call.RENAME, to, 0);
        super.rename(from, to);
        end(Call.RENAME, to, 0);
    }

    @Override
    public boolean createDirectory(String path) {
        begin(Call.LOOK, path, 0);
        return super.createDirectory(path);
    }

    @Override
    public boolean removeDirectory(String path) {
        begin(Call.LOOK, path, 0);
        return super.removeDirectory(path);
    }

    @Override
    public List<String> list(String path) {
        begin(Call.LOOK, path, 0);
        return super.list(path);
    }

    @Override
    public boolean isDirectory(String path) {
        begin(Call.LOOK, path, 0);
        return super.isDirectory(path);
    }

    @Override
    public void syncDirectory(String path) {
        begin(Call.SYNC_DIRECTORY, path, 0);
        super.syncDirectory(path);
        end(Call.SYNC_DIRECTORY, path, 0);
    }

    private final class FaultyFile extends ForwardingFile {
        FaultyFile(DiskFile file) {
            super(file);
        }

        @Override
        public int read(long address, int length, long offset) {
            begin(Call.READ, path(), offset);
            long readable = Math.max(0, readableBytes - offset);
            int count = super.read(address, (int) Math.min(length, readable), offset);
            end(Call.READ, path(), offset);
            return count;
        }

        @Override
        public void write(long address, int length, long offset) {
            begin(Call.WRITE, path(), offset);
            long left = room.getAndAdd(-length);
            super.write(address, (int) Math.clamp(left, 0, length), offset);
            if (left < length) {
                throw new DiskException("could not write", path(), DiskException.ENOSPC);
            }
            end(Call.WRITE, path(), offset);
        }

        @Override
        public void dataSync() {
            begin(Call.SYNC, path(), 0);
            super.dataSync();
            end(Call.SYNC, path(), 0);
        }

        @Override
        public void sync() {
            begin(Call.SYNC, path(), 0);
            super.sync();
            end(Call.SYNC, path(), 0);
        }

        @Override
        public void close() {
            String path = path();
            begin(Call.CLOSE, path, 0);
            super.close();
            end(Call.CLOSE, path, 0);
        }
    }
}
