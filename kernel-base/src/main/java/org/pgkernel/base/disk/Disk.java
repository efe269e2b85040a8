package org.pgkernel.base.disk;

import java.util.List;

/**
 * The disk seam: every file operation of the kernel goes through here, so that a test can put a
 * simulated disk in its place.
 *
 * <p>Paths are strings, absolute or relative to the process; the callers build them once and keep
 * them. All methods throw {@link org.pgkernel.base.error.DiskException} with the system's errno
 * when the system refuses; none returns an error code unless it says so. Thread-safe. An interrupt
 * of the calling thread neither fails a call nor closes a file.
 */
public interface Disk {
    /** Opens an existing file for reading and writing; null when it does not exist. */
    DiskFile openIfExists(String path);

    /** Opens a file for reading and writing that must exist. */
    DiskFile open(String path);

    /** Opens an existing file for reading only; null when it does not exist. */
    DiskFile openReadOnly(String path);

    /**
     * Creates a file that must not exist (O_CREAT | O_EXCL), mode 0600, open for reading and
     * writing.
     */
    DiskFile create(String path);

    /** Opens the file, creating it empty when it does not exist, mode 0600. */
    DiskFile openOrCreate(String path);

    /** True if a file or directory of this name exists. */
    boolean exists(String path);

    /** Removes a file. @return false when it did not exist */
    boolean unlink(String path);

    /**
     * Renames atomically, replacing {@code to}. Durable only after {@link #syncDirectory} of the
     * parent.
     */
    void rename(String from, String to);

    /** Creates a directory, mode 0700. @return false when it existed already */
    boolean createDirectory(String path);

    /** Removes an empty directory. @return false when it did not exist */
    boolean removeDirectory(String path);

    /**
     * Names of the entries, without {@code .} and {@code ..}, in no particular order; empty when
     * the directory does not exist.
     */
    List<String> list(String path);

    /** True if the path is a directory (a symbolic link is followed). */
    boolean isDirectory(String path);

    /** Makes the entries of a directory durable. (PostgreSQL: fsync_fname(path, true).) */
    void syncDirectory(String path);
}
