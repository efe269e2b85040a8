package org.pgkernel.recovery;

import java.nio.ByteBuffer;
import java.util.List;
import org.agrona.BufferUtil;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;

/** Whole directories and small files, through the disk seam. */
public final class Directories {
    private static final int COPY_BYTES = 8 * 8192;
    private static final long WRITEBACK_DISTANCE = 1 << 20;

    private Directories() {}

    /**
     * Removes the directory and everything below; nothing when it does not exist. (PostgreSQL:
     * rmtree, rmtree.c.)
     */
    public static void removeTree(Disk disk, String path) {
        removeContents(disk, path);
        disk.removeDirectory(path);
    }

    /** Removes everything below the directory, which stays. */
    public static void removeContents(Disk disk, String path) {
        for (String name : disk.list(path)) {
            String child = path + "/" + name;
            if (disk.isDirectory(child)) {
                removeTree(disk, child);
            } else {
                disk.unlink(child);
            }
        }
    }

    /** Creates the directory and those above it that are missing. (PostgreSQL: pg_mkdir_p.) */
    public static void createAll(Disk disk, String path) {
        if (disk.exists(path)) {
            return;
        }
        int slash = path.lastIndexOf('/');
        if (slash > 0) {
            createAll(disk, path.substring(0, slash));
        }
        disk.createDirectory(path);
    }

    /**
     * Copies the files of {@code from}, not its directories, into {@code to}, which is made;
     * durable on return. (PostgreSQL: copydir, copydir.c.)
     */
    public static void copy(Disk disk, String from, String to) {
        disk.createDirectory(to);
        List<String> names = disk.list(from);
        for (String name : names) {
            if (!disk.isDirectory(from + "/" + name)) {
                copyFile(disk, from + "/" + name, to + "/" + name);
            }
        }
        for (String name : disk.list(to)) {
            if (!disk.isDirectory(to + "/" + name)) {
                syncFile(disk, to + "/" + name);
            }
        }
        disk.syncDirectory(to);
        int slash = to.lastIndexOf('/');
        if (slash > 0) {
            disk.syncDirectory(to.substring(0, slash));
        }
    }

    /**
     * Copies one file to a name that must be free; not yet durable. (PostgreSQL: copy_file,
     * copydir.c.)
     */
    public static void copyFile(Disk disk, String from, String to) {
        ByteBuffer bytes = BufferUtil.allocateDirectAligned(COPY_BYTES, 4096);
        long address = BufferUtil.address(bytes);
        try (DiskFile source = disk.open(from);
                DiskFile target = disk.create(to)) {
            long offset = 0;
            long flushed = 0;
            int read;
            while ((read = source.read(address, COPY_BYTES, offset)) > 0) {
                target.write(address, read, offset);
                offset += read;
                if (offset - flushed >= WRITEBACK_DISTANCE) {
                    target.startWriteback(flushed, offset - flushed);
                    flushed = offset;
                }
            }
            if (offset > flushed) {
                target.startWriteback(flushed, offset - flushed);
            }
        }
    }

    /**
     * Makes everything below durable: what a server wrote before it crashed may be in the system's
     * cache only. Starts write-out of all files first, so that the syncs find little to do.
     * (PostgreSQL: SyncDataDirectory, fd.c.)
     *
     * @return files synced
     */
    public static long syncTree(Disk disk, String path) {
        startWriteback(disk, path);
        return syncTreeNow(disk, path);
    }

    private static void startWriteback(Disk disk, String path) {
        for (String name : disk.list(path)) {
            String child = path + "/" + name;
            if (disk.isDirectory(child)) {
                startWriteback(disk, child);
                continue;
            }
            DiskFile file = disk.openReadOnly(child);
            if (file != null) {
                try (file) {
                    file.startWriteback(0, file.size());
                }
            }
        }
    }

    private static long syncTreeNow(Disk disk, String path) {
        long files = 0;
        for (String name : disk.list(path)) {
            String child = path + "/" + name;
            if (disk.isDirectory(child)) {
                files += syncTreeNow(disk, child);
                continue;
            }
            DiskFile file = disk.openReadOnly(child);
            if (file != null) {
                try (file) {
                    file.sync();
                    files++;
                }
            }
        }
        disk.syncDirectory(path);
        return files;
    }

    /** Makes a file durable. */
    public static void syncFile(Disk disk, String path) {
        try (DiskFile file = disk.open(path)) {
            file.sync();
        }
    }

    /**
     * Writes the file anew, {@code bytes} and nothing after; durable but for its name in the
     * directory.
     */
    public static void writeFile(Disk disk, String path, byte[] bytes) {
        ByteBuffer direct = ByteBuffer.allocateDirect(Math.max(1, bytes.length));
        direct.put(0, bytes);
        try (DiskFile file = disk.openOrCreate(path)) {
            file.truncate(0);
            file.write(BufferUtil.address(direct), bytes.length, 0);
            file.sync();
        }
    }

    /** The first bytes of a file, at most {@code limit}; null when it does not exist. */
    public static byte[] readFile(Disk disk, String path, int limit) {
        DiskFile file = disk.openReadOnly(path);
        if (file == null) {
            return null;
        }
        try (file) {
            ByteBuffer direct = ByteBuffer.allocateDirect(Math.max(1, limit));
            int length = file.read(BufferUtil.address(direct), limit, 0);
            byte[] bytes = new byte[length];
            direct.get(0, bytes);
            return bytes;
        }
    }
}
