package org.pgkernel.wal;

import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;

/**
 * Brings a file into being whole or not at all: written under a temporary name, synced, renamed,
 * the directory synced. (PostgreSQL: XLogFileInitInternal, InstallXLogFileSegment, durable_rename.)
 */
final class DurableFile {
    /** Fills the new file, which is empty. */
    interface Content {
        void writeTo(DiskFile file);
    }

    private DurableFile() {}

    /**
     * Replaces whatever has the name. A refused write leaves nothing behind; a refused sync stops
     * the kernel.
     */
    static void install(Disk disk, String directory, String path, Content content) {
        // PostgreSQL removes leftovers of this name when it starts.
        String temporary = directory + "/xlogtemp." + ProcessHandle.current().pid();
        disk.unlink(temporary);
        try (DiskFile file = disk.create(temporary)) {
            try {
                content.writeTo(file);
            } catch (DiskException e) {
                disk.unlink(temporary);
                throw e;
            }
            sync(file);
        }
        disk.rename(temporary, path);
        disk.syncDirectory(directory);
    }

    private static void sync(DiskFile file) {
        try {
            file.sync();
        } catch (DiskException e) {
            throw new KernelStoppedException(
                    "a new file could not be made durable: "
                            + e.getMessage()
                            + " file="
                            + file.path(),
                    e);
        }
    }
}
