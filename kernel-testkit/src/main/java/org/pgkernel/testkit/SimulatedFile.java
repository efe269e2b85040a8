package org.pgkernel.testkit;

import org.pgkernel.base.disk.DiskFile;

/** A handle on a file of a {@link SimulatedDisk}, which does the work. */
final class SimulatedFile implements DiskFile {
    private final SimulatedDisk disk;
    private final String path;
    private final FileNode node;
    private final boolean readOnly;

    /** Guarded by the disk's lock. */
    private boolean closed;

    SimulatedFile(SimulatedDisk disk, String path, FileNode node, boolean readOnly) {
        this.disk = disk;
        this.path = path;
        this.node = node;
        this.readOnly = readOnly;
    }

    @Override
    public String path() {
        return path;
    }

    @Override
    public int read(long address, int length, long offset) {
        return disk.read(this, address, length, offset);
    }

    @Override
    public void write(long address, int length, long offset) {
        disk.write(this, address, length, offset);
    }

    @Override
    public long size() {
        return disk.size(this);
    }

    @Override
    public void truncate(long size) {
        disk.truncate(this, size);
    }

    @Override
    public void dataSync() {
        disk.sync(this);
    }

    @Override
    public void sync() {
        disk.sync(this);
    }

    @Override
    public void prefetch(long offset, long length) {}

    @Override
    public void startWriteback(long offset, long length) {}

    @Override
    public void close() {
        disk.close(this);
    }

    @Override
    public String toString() {
        return "file=" + path;
    }

    FileNode node() {
        return node;
    }

    boolean readOnly() {
        return readOnly;
    }

    boolean isClosed() {
        return closed;
    }

    void markClosed() {
        closed = true;
    }
}
