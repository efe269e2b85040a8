package org.pgkernel.smgr;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;

/** A disk of files that have a length and nothing in it; for tests of sizes, in great numbers. */
final class LengthDisk implements Disk {
    /** Guarded by this monitor. */
    private final Map<String, LengthFile> files = new HashMap<>();

    /** Blocks of a fork by the rule of the files alone: full segments, then one that is not. */
    synchronized int forkBlocks(String path, int segmentBlocks) {
        int blocks = 0;
        for (int segment = 0; ; segment++) {
            LengthFile file = files.get(segment == 0 ? path : path + "." + segment);
            if (file == null) {
                return blocks;
            }
            int inSegment = (int) (file.size() / BlockNumber.PAGE_SIZE);
            blocks += inSegment;
            if (inSegment < segmentBlocks) {
                return blocks;
            }
        }
    }

    @Override
    public synchronized DiskFile openIfExists(String path) {
        return files.get(path);
    }

    @Override
    public DiskFile open(String path) {
        DiskFile file = openIfExists(path);
        if (file == null) {
            throw new DiskException("no such file", path, DiskException.ENOENT);
        }
        return file;
    }

    @Override
    public DiskFile openReadOnly(String path) {
        return openIfExists(path);
    }

    @Override
    public synchronized DiskFile create(String path) {
        if (files.containsKey(path)) {
            throw new DiskException("file exists", path, DiskException.EEXIST);
        }
        return openOrCreate(path);
    }

    @Override
    public synchronized DiskFile openOrCreate(String path) {
        LengthFile file = files.get(path);
        if (file == null) {
            file = new LengthFile(path);
            files.put(path, file);
        }
        return file;
    }

    @Override
    public synchronized boolean exists(String path) {
        return files.containsKey(path);
    }

    @Override
    public synchronized boolean unlink(String path) {
        return files.remove(path) != null;
    }

    @Override
    public void rename(String from, String to) {
        throw new AssertionError("relations are never renamed: file=" + from);
    }

    @Override
    public boolean createDirectory(String path) {
        return false;
    }

    @Override
    public boolean removeDirectory(String path) {
        return false;
    }

    @Override
    public List<String> list(String path) {
        return List.of();
    }

    @Override
    public boolean isDirectory(String path) {
        return true;
    }

    @Override
    public void syncDirectory(String path) {}

    private static final class LengthFile implements DiskFile {
        private final String path;

        /** Guarded by this monitor. */
        private long length;

        LengthFile(String path) {
            this.path = path;
        }

        @Override
        public String path() {
            return path;
        }

        @Override
        public synchronized int read(long address, int count, long offset) {
            return (int) Math.clamp(length - offset, 0, count);
        }

        @Override
        public synchronized void write(long address, int count, long offset) {
            length = Math.max(length, offset + count);
        }

        @Override
        public synchronized long size() {
            return length;
        }

        @Override
        public synchronized void truncate(long size) {
            length = size;
        }

        @Override
        public void dataSync() {}

        @Override
        public void sync() {}

        @Override
        public void prefetch(long offset, long count) {}

        @Override
        public void startWriteback(long offset, long count) {}

        @Override
        public void close() {}
    }
}
