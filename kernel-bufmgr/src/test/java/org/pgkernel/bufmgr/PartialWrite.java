package org.pgkernel.bufmgr;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import org.pgkernel.base.error.DiskException;

/** Writes that store a part of what they were given, and then fail. */
final class PartialWrite {
    private PartialWrite() {}

    /**
     * Every write stores {@code bytes} zeros, which is right when zeros are written, and fails.
     *
     * @param errno why
     */
    static HookedDisk.Hook failing(int bytes, int errno) {
        return (path, offset) -> {
            if (bytes > 0) {
                try (RandomAccessFile file = new RandomAccessFile(path, "rw")) {
                    file.seek(offset);
                    file.write(new byte[bytes]);
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            }
            throw new DiskException("planted", path, errno);
        };
    }
}
