package org.pgkernel.cluster;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.agrona.BufferUtil;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.recovery.Directories;

/**
 * {@code postmaster.pid}: one kernel, ours or PostgreSQL's, on a data directory. The first line is
 * the owner's process id; a file whose owner is gone is removed, as PostgreSQL does. (PostgreSQL:
 * CreateLockFile, miscinit.c; pidfile.h.)
 */
final class LockFile implements AutoCloseable {
    static final String NAME = "postmaster.pid";

    private static final int MAX_LENGTH = 4096;
    private static final int MAX_TRIES = 100;

    /** Paths locked by this process, which its process id alone does not tell. */
    private static final Set<String> HELD_HERE = ConcurrentHashMap.newKeySet();

    private final Disk disk;
    private final String path;

    private LockFile(Disk disk, String path) {
        this.disk = disk;
        this.path = path;
    }

    /**
     * Looks for a live owner; writes nothing.
     *
     * @throws RefusedException when there is one, or when the file cannot be understood
     */
    static void check(Disk disk, String dataDirectory) {
        String path = dataDirectory + "/" + NAME;
        byte[] content = Directories.readFile(disk, path, MAX_LENGTH);
        if (content == null) {
            return;
        }
        String text = new String(content, StandardCharsets.UTF_8);
        if (text.isBlank()) {
            throw new RefusedException(
                    "the lock file is empty: either a server is starting, or one died while starting: file="
                            + path);
        }
        long pid = ownerOf(text, path);
        if (pid == ProcessHandle.current().pid() ? HELD_HERE.contains(path) : isAlive(pid)) {
            throw new RefusedException(
                    "a server is running in the data directory, process " + pid + ": file=" + path);
        }
    }

    private static long ownerOf(String text, String path) {
        String first = text.lines().findFirst().orElse("").strip();
        try {
            // Negative: a single-user server, not a postmaster.
            long pid = Math.abs(Long.parseLong(first));
            if (pid > 0) {
                return pid;
            }
        } catch (NumberFormatException e) {
            // falls through: the same answer
        }
        throw new RefusedException("the lock file does not begin with a process id: file=" + path);
    }

    /** A parent of ours is no server: its id was given out anew after a restart of the machine. */
    private static boolean isAlive(long pid) {
        Optional<ProcessHandle> parent = ProcessHandle.current().parent();
        if (parent.isPresent()
                && (parent.get().pid() == pid
                        || parent.get().parent().map(p -> p.pid() == pid).orElse(false))) {
            return false;
        }
        return ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false);
    }

    /** Takes the lock: removes a stale file, creates ours. */
    static LockFile take(Disk disk, String dataDirectory, Clock clock) {
        String path = dataDirectory + "/" + NAME;
        for (int tries = 0; ; tries++) {
            // Created first, looked at only when that fails: a file that another one makes
            // meanwhile is never removed unseen.
            try (DiskFile file = disk.create(path)) {
                byte[] text =
                        (ProcessHandle.current().pid()
                                        + "\n"
                                        + dataDirectory
                                        + "\n"
                                        + clock.instant().getEpochSecond()
                                        + "\n0\n\n\n")
                                .getBytes(StandardCharsets.UTF_8);
                write(disk, path, file, text);
                HELD_HERE.add(path);
                return new LockFile(disk, path);
            } catch (DiskException e) {
                if (e.errno() != DiskException.EEXIST || tries >= MAX_TRIES) {
                    throw e;
                }
            }
            check(disk, dataDirectory);
            disk.unlink(path);
        }
    }

    /** An empty file left behind would keep everybody out. */
    private static void write(Disk disk, String path, DiskFile file, byte[] text) {
        ByteBuffer direct = ByteBuffer.allocateDirect(text.length);
        direct.put(0, text);
        try {
            file.write(BufferUtil.address(direct), text.length, 0);
            file.sync();
        } catch (DiskException e) {
            disk.unlink(path);
            throw e;
        }
    }

    @Override
    public void close() {
        try {
            disk.unlink(path);
        } finally {
            HELD_HERE.remove(path);
        }
    }
}
