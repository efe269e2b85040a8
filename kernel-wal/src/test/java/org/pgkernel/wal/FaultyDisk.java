package org.pgkernel.wal;

import java.util.List;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;

/** A disk whose calls on files of a certain name fail as told. */
final class FaultyDisk implements Disk {
    private final Disk disk;

    /** Part of the name of the files concerned. */
    String name = "";

    boolean failReads;
    boolean failWrites;
    boolean failSyncs;
    boolean failRenames;

    /** Reads end here at the latest, as if the file did. */
    long readableBytes = Long.MAX_VALUE;

    int syncs;

    FaultyDisk(Disk disk) {
        this.disk = disk;
    }

    private void fail(boolean whether, String path, int errno) {
        if (whether && path.contains(name)) {
            throw new DiskException("told to fail file=" + path, errno);
        }
    }

    private DiskFile wrap(DiskFile file) {
        return file == null ? null : new Faulty(file);
    }

    @Override
    public DiskFile openIfExists(String path) {
        return wrap(disk.openIfExists(path));
    }

    @Override
    public DiskFile open(String path) {
        return wrap(disk.open(path));
    }

    @Override
    public DiskFile openReadOnly(String path) {
        return wrap(disk.openReadOnly(path));
    }

    @Override
    public DiskFile create(String path) {
        return wrap(disk.create(path));
    }

    @Override
    public DiskFile openOrCreate(String path) {
        return wrap(disk.openOrCreate(path));
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
        fail(failRenames, to, DiskException.EIO);
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

    private final class Faulty implements DiskFile {
        private final DiskFile file;

        Faulty(DiskFile file) {
            this.file = file;
        }

        @Override
        public String path() {
            return file.path();
        }

        @Override
        public int read(long address, int length, long offset) {
            fail(failReads, path(), DiskException.EIO);
            return path().contains(name)
                    ? file.read(
                            address,
                            (int) Math.max(0, Math.min(length, readableBytes - offset)),
                            offset)
                    : file.read(address, length, offset);
        }

        @Override
        public void write(long address, int length, long offset) {
            fail(failWrites, path(), DiskException.ENOSPC);
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
            syncs++;
            fail(failSyncs, path(), DiskException.EIO);
            file.dataSync();
        }

        @Override
        public void sync() {
            syncs++;
            fail(failSyncs, path(), DiskException.EIO);
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
