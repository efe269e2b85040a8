package org.pgkernel.base.disk;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.RefusedException;

/**
 * The real disk, by system calls on native addresses: transfers copy and allocate nothing. Nothing
 * here is a {@code java.nio} channel, since an interrupt closes those under all their users.
 * Stateless; one instance serves any number of threads.
 *
 * <p>Opening, renaming and the like allocate (a C string) and are not for hot paths.
 */
public final class PosixDisk implements Disk {
    private static final int FILE_MODE = 0600;
    private static final int DIRECTORY_MODE = 0700;

    @Override
    public DiskFile openIfExists(String path) {
        return openFile(path, LibC.O_RDWR, true);
    }

    @Override
    public DiskFile open(String path) {
        return openFile(path, LibC.O_RDWR, false);
    }

    @Override
    public DiskFile openReadOnly(String path) {
        return openFile(path, LibC.O_RDONLY, true);
    }

    @Override
    public DiskFile create(String path) {
        return openFile(path, LibC.O_RDWR | LibC.O_CREAT | LibC.O_EXCL, false);
    }

    @Override
    public DiskFile openOrCreate(String path) {
        return openFile(path, LibC.O_RDWR | LibC.O_CREAT, false);
    }

    @Override
    public boolean exists(String path) {
        try (Arena arena = Arena.ofConfined()) {
            int result = LibC.access(text(arena, path));
            if (result == 0) {
                return true;
            }
            if (-result == DiskException.ENOENT || -result == LibC.ENOTDIR) {
                return false;
            }
            throw new DiskException("could not look at file", path, -result);
        }
    }

    @Override
    public boolean unlink(String path) {
        try (Arena arena = Arena.ofConfined()) {
            return doneUnless(
                    LibC.unlink(text(arena, path)),
                    DiskException.ENOENT,
                    "could not remove file",
                    path);
        }
    }

    @Override
    public void rename(String from, String to) {
        try (Arena arena = Arena.ofConfined()) {
            int result = LibC.rename(text(arena, from), text(arena, to));
            if (result < 0) {
                throw new DiskException("could not rename to " + to, from, -result);
            }
        }
    }

    @Override
    public boolean createDirectory(String path) {
        try (Arena arena = Arena.ofConfined()) {
            int result = LibC.mkdir(text(arena, path), DIRECTORY_MODE);
            return doneUnless(result, DiskException.EEXIST, "could not create directory", path);
        }
    }

    @Override
    public boolean removeDirectory(String path) {
        try (Arena arena = Arena.ofConfined()) {
            return doneUnless(
                    LibC.rmdir(text(arena, path)),
                    DiskException.ENOENT,
                    "could not remove directory",
                    path);
        }
    }

    @Override
    public List<String> list(String path) {
        List<String> names = new ArrayList<>();
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(Path.of(path))) {
            for (Path entry : entries) {
                names.add(entry.getFileName().toString());
            }
        } catch (NoSuchFileException e) {
            return List.of();
        } catch (NotDirectoryException e) {
            throw new DiskException("could not list directory", path, LibC.ENOTDIR);
        } catch (IOException | DirectoryIteratorException e) {
            throw new DiskException(
                    "could not list directory (" + e.getMessage() + ")", path, DiskException.EIO);
        }
        return names;
    }

    @Override
    public boolean isDirectory(String path) {
        return Files.isDirectory(Path.of(path));
    }

    @Override
    public void syncDirectory(String path) {
        try (Arena arena = Arena.ofConfined()) {
            int fd = LibC.open(text(arena, path), LibC.O_RDONLY, 0);
            if (fd < 0) {
                throw new DiskException("could not open directory", path, -fd);
            }
            int result = LibC.fsync(fd);
            LibC.close(fd);
            // Some file systems cannot sync a directory and say so; PostgreSQL lets that pass too.
            if (result < 0 && -result != LibC.EBADF && -result != LibC.EINVAL) {
                throw new DiskException("could not sync directory", path, -result);
            }
        }
    }

    private static DiskFile openFile(String path, int flags, boolean mayBeMissing) {
        try (Arena arena = Arena.ofConfined()) {
            int fd = LibC.open(text(arena, path), flags, FILE_MODE);
            if (fd >= 0) {
                return new PosixFile(path, fd);
            }
            if (mayBeMissing && -fd == DiskException.ENOENT) {
                return null;
            }
            throw new DiskException(
                    (flags & LibC.O_EXCL) != 0 ? "could not create file" : "could not open file",
                    path,
                    -fd);
        }
    }

    private static boolean doneUnless(int result, int harmless, String what, String path) {
        if (result == 0) {
            return true;
        }
        if (-result == harmless) {
            return false;
        }
        throw new DiskException(what, path, -result);
    }

    private static MemorySegment text(Arena arena, String path) {
        if (path.indexOf('\0') >= 0) {
            throw new RefusedException(
                    "a file name may not hold a zero byte: file=" + path.replace('\0', '?'));
        }
        return arena.allocateFrom(path);
    }
}
