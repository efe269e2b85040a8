package org.pgkernel.testkit.verify;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.disk.NativeMemory;

/** A file's bytes, for small files. */
final class WholeFile {
    private static final int PART = 1 << 16;
    private static final UnsafeBuffer NOTHING = new UnsafeBuffer(new byte[0]);

    private WholeFile() {}

    /** Empty if there is no such file. */
    static UnsafeBuffer read(Disk disk, String path) {
        try (DiskFile file = disk.openReadOnly(path)) {
            if (file == null) {
                return NOTHING;
            }
            byte[] bytes = new byte[Math.toIntExact(file.size())];
            long memory = NativeMemory.reserve(PART);
            try {
                UnsafeBuffer part = new UnsafeBuffer(memory, PART);
                for (int at = 0; at < bytes.length; at += PART) {
                    int length = Math.min(PART, bytes.length - at);
                    part.getBytes(0, bytes, at, file.read(memory, length, at));
                }
            } finally {
                NativeMemory.release(memory, PART);
            }
            return new UnsafeBuffer(bytes);
        }
    }

    static int blocks(UnsafeBuffer file) {
        return file.capacity() / Page.SIZE;
    }

    static UnsafeBuffer page(UnsafeBuffer file, int block) {
        return new UnsafeBuffer(file, block * Page.SIZE, Page.SIZE);
    }
}
