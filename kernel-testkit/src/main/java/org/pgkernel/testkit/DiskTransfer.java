package org.pgkernel.testkit;

import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.disk.NativeMemory;

/**
 * Copies trees of files between disks, a real directory into a {@link SimulatedDisk} and back, say.
 * Syncs nothing.
 */
public final class DiskTransfer {
    private static final int PART = 1 << 20;

    private DiskTransfer() {}

    /** Copies a directory with all that is in it; {@code target} may exist, its parent must. */
    public static void copy(Disk from, String source, Disk to, String target) {
        long memory = NativeMemory.reserve(PART);
        try {
            copyDirectory(from, source, to, target, memory);
        } finally {
            NativeMemory.release(memory, PART);
        }
    }

    private static void copyDirectory(
            Disk from, String source, Disk to, String target, long memory) {
        to.createDirectory(target);
        for (String name : from.list(source)) {
            String path = source + "/" + name;
            if (from.isDirectory(path)) {
                copyDirectory(from, path, to, target + "/" + name, memory);
            } else {
                copyFile(from, path, to, target + "/" + name, memory);
            }
        }
    }

    private static void copyFile(Disk from, String source, Disk to, String target, long memory) {
        try (DiskFile in = from.openReadOnly(source);
                DiskFile out = to.openOrCreate(target)) {
            long offset = 0;
            for (int count = PART; count == PART; offset += count) {
                count = in.read(memory, PART, offset);
                out.write(memory, count, offset);
            }
            out.truncate(offset);
        }
    }
}
