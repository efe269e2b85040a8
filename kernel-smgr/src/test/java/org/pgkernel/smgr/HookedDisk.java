package org.pgkernel.smgr;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DiskException;

/**
 * The real disk with a place to step in before each call, and a count of the system calls on paths.
 */
final class HookedDisk implements Disk {
    private final Disk disk = new PosixDisk();

    Consumer<String> beforeOpen = path -> {};
    Consumer<String> beforeSync = path -> {};
    Consumer<String> beforeUnlink = path -> {};
    Consumer<String> beforeClose = path -> {};

    /**
     * Bytes that writes may still store; a write past it stores what fits and reports a full disk.
     */
    long room = Long.MAX_VALUE;

    final AtomicInteger opens = new AtomicInteger();
    final AtomicInteger unlinks = new AtomicInteger();
    final AtomicInteger others = new AtomicInteger();
    final AtomicInteger fileSyncs = new AtomicInteger();
    final AtomicInteger directorySyncs = new AtomicInteger();

    @Override
    public DiskFile openIfExists(String path) {
        return opened(path, disk::openIfExists);
    }

    @Override
    public DiskFile open(String path) {
        return opened(path, disk::open);
    }

    @Override
    public DiskFile openReadOnly(String path) {
        return opened(path, disk::openReadOnly);
    }

    @Override
    public DiskFile create(String path) {
        return opened(path, disk::create);
    }

    @Override
    public DiskFile openOrCreate(String path) {
        return opened(path, disk::openOrCreate);
    }

    @Override
    public boolean exists(String path) {
        others.incrementAndGet();
        return disk.exists(path);
    }

    @Override
    public boolean unlink(String path) {
        unlinks.incrementAndGet();
        beforeUnlink.accept(path);
        return disk.unlink(path);
    }

    @Override
    public void rename(String from, String to) {
        disk.rename(from, to);
    }

    @Override
    public boolean createDirectory(String path) {
        others.incrementAndGet();
        return disk.createDirectory(path);
    }

    @Override
    public boolean removeDirectory(String path) {
        return disk.removeDirectory(path);
    }

    @Override
    public List<String> list(String path) {
        others.incrementAndGet();
        return disk.list(path);
    }

    @Override
    public boolean isDirectory(String path) {
        others.incrementAndGet();
        return disk.isDirectory(path);
    }

    @Override
    public void syncDirectory(String path) {
        directorySyncs.incrementAndGet();
        disk.syncDirectory(path);
    }

    private interface Opener {
        DiskFile open(String path);
    }

    private DiskFile opened(String path, Opener opener) {
        opens.incrementAndGet();
        beforeOpen.accept(path);
        DiskFile file = opener.open(path);
        return file == null ? null : new HookedFile(file);
    }

    private final class HookedFile implements DiskFile {
        private final DiskFile file;

        HookedFile(DiskFile file) {
            this.file = file;
        }

        @Override
        public String path() {
            return file.path();
        }

        @Override
        public int read(long address, int length, long offset) {
            return file.read(address, length, offset);
        }

        @Override
        public void write(long address, int length, long offset) {
            if (length > room) {
                file.write(address, (int) room, offset);
                room = 0;
                throw new DiskException("could not write", path(), DiskException.ENOSPC);
            }
            room -= length;
            file.write(address, length, offset);
        }

        @Override
        public long size() {
            return file.size();
        }

        @Override
        public void truncate(long size) {
            file.truncate(size);
        }

        @Override
        public void dataSync() {
            file.dataSync();
        }

        @Override
        public void sync() {
            fileSyncs.incrementAndGet();
            beforeSync.accept(path());
            file.sync();
        }

        @Override
        public void prefetch(long offset, long length) {
            file.prefetch(offset, length);
        }

        @Override
        public void startWriteback(long offset, long length) {
            file.startWriteback(offset, length);
        }

        @Override
        public void close() {
            file.close();
            beforeClose.accept(path());
        }
    }
}
