package org.pgkernel.base.disk;

import org.pgkernel.base.error.DiskException;

/**
 * A file descriptor. Positions are always given, so that any number of threads may transfer at
 * once.
 */
final class PosixFile implements DiskFile {
    private final String path;

    /**
     * The descriptor; -1 once closed. Written by {@link #close} only, which no other call may
     * overlap.
     */
    private volatile int fd;

    PosixFile(String path, int fd) {
        this.path = path;
        this.fd = fd;
    }

    @Override
    public String path() {
        return path;
    }

    @Override
    public int read(long address, int length, long offset) {
        assert length >= 0 && offset >= 0;
        int done = 0;
        while (done < length) {
            long count = LibC.pread(fd, address + done, length - done, offset + done);
            if (count < 0) {
                throw failed("could not read " + length + " bytes at offset " + offset, -count);
            }
            if (count == 0) {
                break;
            }
            done += (int) count;
        }
        return done;
    }

    @Override
    public int readv(long[] addresses, int first, int count, int length, long offset) {
        assert count > 0 && length > 0 && offset >= 0;
        assert (long) count * length <= Integer.MAX_VALUE : "too much for one call";
        int wanted = count * length;
        int done = 0;
        while (done < wanted) {
            // A short read may end in the middle of a piece: go on right there.
            int piece = done / length;
            long bytes =
                    LibC.preadv(
                            fd,
                            addresses,
                            first + piece,
                            Math.min(count - piece, LibC.MAX_VECTORS),
                            length,
                            done % length,
                            offset + done);
            if (bytes < 0) {
                throw failed("could not read " + wanted + " bytes at offset " + offset, -bytes);
            }
            if (bytes == 0) {
                break;
            }
            done += (int) bytes;
        }
        return done;
    }

    @Override
    public void write(long address, int length, long offset) {
        assert length >= 0 && offset >= 0;
        int done = 0;
        while (done < length) {
            long count = LibC.pwrite(fd, address + done, length - done, offset + done);
            if (count <= 0) {
                // BASE-3: the system reports a full disk as no progress as often as by name.
                throw failed(
                        "could not write " + length + " bytes at offset " + offset,
                        count == 0 ? DiskException.ENOSPC : -count);
            }
            done += (int) count;
        }
    }

    @Override
    public long size() {
        long size = LibC.size(fd);
        if (size < 0) {
            throw failed("could not tell the size", -size);
        }
        return size;
    }

    @Override
    public void truncate(long size) {
        assert size >= 0;
        int result = LibC.ftruncate(fd, size);
        if (result < 0) {
            throw failed("could not truncate to " + size + " bytes", -result);
        }
    }

    @Override
    public void dataSync() {
        int result = LibC.fdatasync(fd);
        if (result < 0) {
            throw failed("could not sync the data", -result);
        }
    }

    @Override
    public void sync() {
        int result = LibC.fsync(fd);
        if (result < 0) {
            throw failed("could not sync", -result);
        }
    }

    @Override
    public void prefetch(long offset, long length) {
        LibC.willNeed(fd, offset, length);
    }

    @Override
    public void startWriteback(long offset, long length) {
        LibC.startWriteback(fd, offset, length);
    }

    @Override
    public void close() {
        int open = fd;
        if (open < 0) {
            return;
        }
        fd = -1;
        int result = LibC.close(open);
        if (result < 0 && -result != LibC.EINTR) {
            throw failed("could not close", -result);
        }
    }

    @Override
    public String toString() {
        return "file=" + path;
    }

    private DiskException failed(String what, long errno) {
        return new DiskException(what, path, (int) errno);
    }
}
