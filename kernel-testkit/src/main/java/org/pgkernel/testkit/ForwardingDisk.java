package org.pgkernel.testkit;

import java.util.List;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;

/**
 * A disk that passes every call on to another one. Tests extend it and override the calls they mean
 * to watch, delay or fail.
 */
public class ForwardingDisk implements Disk {
    private final Disk disk;

    public ForwardingDisk(Disk disk) {
        this.disk = disk;
    }

    /** What callers get to see of a file that was opened; the file itself unless overridden. */
    protected DiskFile opened(DiskFile file) {
        return file;
    }

    private DiskFile openedOrNull(DiskFile file) {
        return file == null ? null : opened(file);
    }

    @Override
    public DiskFile openIfExists(String path) {
        return openedOrNull(disk.openIfExists(path));
    }

    @Override
    public DiskFile open(String path) {
        return openedOrNull(disk.open(path));
    }

    @Override
    public DiskFile openReadOnly(String path) {
        return openedOrNull(disk.openReadOnly(path));
    }

    @Override
    public DiskFile create(String path) {
        return openedOrNull(disk.create(path));
    }

    @Override
    public DiskFile openOrCreate(String path) {
        return openedOrNull(disk.openOrCreate(path));
    }

    @Override
    public boolean exists(String path) {
        return disk.exists(path);
    }

    @Override
    public boolean unlink(String path) {
        return disk.unlink(path);
    }

    @Override
    public void rename(String from, String to) {
        disk.rename(from, to);
    }

    @Override
    public boolean createDirectory(String path) {
        return disk.createDirectory(path);
    }

    @Override
    public boolean removeDirectory(String path) {
        return disk.removeDirectory(path);
    }

    @Override
    public List<String> list(String path) {
        return disk.list(path);
    }

    @Override
    public boolean isDirectory(String path) {
        return disk.isDirectory(path);
    }

    @Override
    public void syncDirectory(String path) {
        disk.syncDirectory(path);
    }

    /** A file that passes every call on to another one. */
    public static class ForwardingFile implements DiskFile {
        private final DiskFile file;

        public ForwardingFile(DiskFile file) {
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
        }
    }
}
