package org.pgkernel.base.disk;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;

/**
 * The system calls of the disk seam, by downcall. Native addresses travel as {@code long}, so that
 * no segment object is made for a transfer; errno is caught in a segment that each thread makes
 * once and keeps. A call returns what the system returns, or, when the system reports failure,
 * {@code -errno}: callers need no second look-up.
 *
 * <p>To catch errno the linker makes a slice of that segment, 40 bytes that the compiler gets rid
 * of only where it goes deep enough into the call. So transfers, which must never make garbage, are
 * called without it, and once more with it when they fail: reading or writing the same bytes again
 * does no harm, and if it succeeds now, it has succeeded.
 *
 * <p>The constants are Linux's and the same on x86-64 and aarch64 (which is why O_DIRECTORY, whose
 * value differs, is not used).
 */
final class LibC {
    static final int O_RDONLY = 0;
    static final int O_RDWR = 2;
    static final int O_CREAT = 0x40;
    static final int O_EXCL = 0x80;
    static final int O_CLOEXEC = 0x80000;

    static final int EINTR = 4;
    static final int EBADF = 9;
    static final int ENOTDIR = 20;
    static final int EINVAL = 22;

    /** Pieces of memory that one {@link #preadv} takes at most; the system would take 1024. */
    static final int MAX_VECTORS = 128;

    /** {@code struct iovec}: address 8, length 8. */
    private static final int VECTOR_BYTES = 16;

    private static final int SEEK_END = 2;
    private static final int POSIX_FADV_WILLNEED = 3;
    private static final int SYNC_FILE_RANGE_WRITE = 2;
    private static final int PROT_READ_WRITE = 3;
    private static final int MAP_PRIVATE_ANONYMOUS_NORESERVE = 0x02 | 0x20 | 0x4000;
    private static final int MADV_HUGEPAGE = 14;

    private static final Linker LINKER = Linker.nativeLinker();
    private static final StructLayout CAPTURE = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO = CAPTURE.varHandle(PathElement.groupElement("errno"));
    private static final ThreadLocal<MemorySegment> STATE =
            ThreadLocal.withInitial(() -> Arena.ofAuto().allocate(CAPTURE));

    /** The vectors of a thread's own {@link #preadv}; freed with the thread. */
    private static final ThreadLocal<MemorySegment> VECTORS =
            ThreadLocal.withInitial(
                    () -> Arena.ofAuto().allocate((long) MAX_VECTORS * VECTOR_BYTES, 8));

    private static final MethodHandle OPEN =
            handle(
                    "open",
                    FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT),
                    Linker.Option.firstVariadicArg(2));
    private static final MethodHandle CLOSE =
            handle("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
    private static final MethodHandle PREAD =
            handle(
                    "pread",
                    FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle PREAD_ONLY = transfer("pread");
    private static final MethodHandle PREADV =
            handle(
                    "preadv",
                    FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_INT, JAVA_LONG));
    private static final MethodHandle PREADV_ONLY =
            withoutErrno(
                    "preadv",
                    FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_INT, JAVA_LONG));
    private static final MethodHandle PWRITE =
            handle(
                    "pwrite",
                    FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle PWRITE_ONLY = transfer("pwrite");
    private static final MethodHandle LSEEK =
            handle("lseek", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_INT));
    private static final MethodHandle FTRUNCATE =
            handle("ftruncate", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG));
    private static final MethodHandle FDATASYNC =
            handle("fdatasync", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
    private static final MethodHandle FSYNC =
            handle("fsync", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
    private static final MethodHandle FADVISE =
            handle(
                    "posix_fadvise",
                    FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT));
    private static final MethodHandle SYNC_FILE_RANGE =
            handle(
                    "sync_file_range",
                    FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT));
    private static final MethodHandle ACCESS =
            handle("access", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
    private static final MethodHandle UNLINK =
            handle("unlink", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    private static final MethodHandle RENAME =
            handle("rename", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
    private static final MethodHandle MKDIR =
            handle("mkdir", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
    private static final MethodHandle RMDIR =
            handle("rmdir", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    private static final MethodHandle MMAP =
            handle(
                    "mmap",
                    FunctionDescriptor.of(
                            JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT,
                            JAVA_LONG));
    private static final MethodHandle MUNMAP =
            handle("munmap", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle MADVISE =
            handle("madvise", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT));

    private LibC() {}

    private static MethodHandle handle(
            String name, FunctionDescriptor type, Linker.Option... more) {
        Linker.Option[] options = new Linker.Option[more.length + 1];
        options[0] = Linker.Option.captureCallState("errno");
        System.arraycopy(more, 0, options, 1, more.length);
        return LINKER.downcallHandle(LINKER.defaultLookup().findOrThrow(name), type, options);
    }

    private static MethodHandle transfer(String name) {
        return withoutErrno(
                name, FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    }

    private static MethodHandle withoutErrno(String name, FunctionDescriptor type) {
        return LINKER.downcallHandle(LINKER.defaultLookup().findOrThrow(name), type);
    }

    static int open(MemorySegment path, int flags, int mode) {
        MemorySegment state = STATE.get();
        int result;
        do {
            try {
                result = (int) OPEN.invokeExact(state, path, flags | O_CLOEXEC, mode);
            } catch (Throwable t) {
                throw broken(t);
            }
        } while (result < 0 && errno(state) == EINTR);
        return result < 0 ? -errno(state) : result;
    }

    /** Not repeated on EINTR: Linux has closed the descriptor by then. */
    static int close(int fd) {
        MemorySegment state = STATE.get();
        try {
            int result = (int) CLOSE.invokeExact(state, fd);
            return result < 0 ? -errno(state) : result;
        } catch (Throwable t) {
            throw broken(t);
        }
    }

    static long pread(int fd, long address, long length, long offset) {
        long result;
        try {
            result = (long) PREAD_ONLY.invokeExact(fd, address, length, offset);
        } catch (Throwable t) {
            throw broken(t);
        }
        return result >= 0 ? result : preadForErrno(fd, address, length, offset);
    }

    private static long preadForErrno(int fd, long address, long length, long offset) {
        MemorySegment state = STATE.get();
        long result;
        do {
            try {
                result = (long) PREAD.invokeExact(state, fd, address, length, offset);
            } catch (Throwable t) {
                throw broken(t);
            }
        } while (result < 0 && errno(state) == EINTR);
        return result < 0 ? -errno(state) : result;
    }

    /**
     * Reads {@code count} consecutive pieces of {@code length} bytes, the first without its first
     * {@code skipped} bytes, which {@code offset} has passed already.
     */
    static long preadv(
            int fd, long[] addresses, int first, int count, int length, int skipped, long offset) {
        MemorySegment vectors = VECTORS.get();
        for (int i = 0; i < count; i++) {
            int skip = i == 0 ? skipped : 0;
            vectors.set(JAVA_LONG, (long) i * VECTOR_BYTES, addresses[first + i] + skip);
            vectors.set(JAVA_LONG, (long) i * VECTOR_BYTES + Long.BYTES, length - skip);
        }
        long address = vectors.address();
        long result;
        try {
            result = (long) PREADV_ONLY.invokeExact(fd, address, count, offset);
        } catch (Throwable t) {
            throw broken(t);
        }
        return result >= 0 ? result : preadvForErrno(fd, address, count, offset);
    }

    private static long preadvForErrno(int fd, long vectors, int count, long offset) {
        MemorySegment state = STATE.get();
        long result;
        do {
            try {
                result = (long) PREADV.invokeExact(state, fd, vectors, count, offset);
            } catch (Throwable t) {
                throw broken(t);
            }
        } while (result < 0 && errno(state) == EINTR);
        return result < 0 ? -errno(state) : result;
    }

    static long pwrite(int fd, long address, long length, long offset) {
        long result;
        try {
            result = (long) PWRITE_ONLY.invokeExact(fd, address, length, offset);
        } catch (Throwable t) {
            throw broken(t);
        }
        return result >= 0 ? result : pwriteForErrno(fd, address, length, offset);
    }

    private static long pwriteForErrno(int fd, long address, long length, long offset) {
        MemorySegment state = STATE.get();
        long result;
        do {
            try {
                result = (long) PWRITE.invokeExact(state, fd, address, length, offset);
            } catch (Throwable t) {
                throw broken(t);
            }
        } while (result < 0 && errno(state) == EINTR);
        return result < 0 ? -errno(state) : result;
    }

    /**
     * Moves the descriptor's own position, which nobody else uses: all transfers name their offset.
     */
    static long size(int fd) {
        MemorySegment state = STATE.get();
        try {
            long result = (long) LSEEK.invokeExact(state, fd, 0L, SEEK_END);
            return result < 0 ? -errno(state) : result;
        } catch (Throwable t) {
            throw broken(t);
        }
    }

    static int ftruncate(int fd, long size) {
        MemorySegment state = STATE.get();
        int result;
        do {
            try {
                result = (int) FTRUNCATE.invokeExact(state, fd, size);
            } catch (Throwable t) {
                throw broken(t);
            }
        } while (result < 0 && errno(state) == EINTR);
        return result < 0 ? -errno(state) : result;
    }

    static int fdatasync(int fd) {
        return sync(FDATASYNC, fd);
    }

    static int fsync(int fd) {
        return sync(FSYNC, fd);
    }

    static void willNeed(int fd, long offset, long length) {
        MemorySegment state = STATE.get();
        try {
            int ignored = (int) FADVISE.invokeExact(state, fd, offset, length, POSIX_FADV_WILLNEED);
        } catch (Throwable t) {
            throw broken(t);
        }
    }

    static void startWriteback(int fd, long offset, long length) {
        MemorySegment state = STATE.get();
        try {
            int ignored =
                    (int)
                            SYNC_FILE_RANGE.invokeExact(
                                    state, fd, offset, length, SYNC_FILE_RANGE_WRITE);
        } catch (Throwable t) {
            throw broken(t);
        }
    }

    static int access(MemorySegment path) {
        MemorySegment state = STATE.get();
        try {
            int result = (int) ACCESS.invokeExact(state, path, 0);
            return result < 0 ? -errno(state) : result;
        } catch (Throwable t) {
            throw broken(t);
        }
    }

    static int unlink(MemorySegment path) {
        return onPath(UNLINK, path);
    }

    static int rmdir(MemorySegment path) {
        return onPath(RMDIR, path);
    }

    static int rename(MemorySegment from, MemorySegment to) {
        MemorySegment state = STATE.get();
        try {
            int result = (int) RENAME.invokeExact(state, from, to);
            return result < 0 ? -errno(state) : result;
        } catch (Throwable t) {
            throw broken(t);
        }
    }

    static int mkdir(MemorySegment path, int mode) {
        MemorySegment state = STATE.get();
        try {
            int result = (int) MKDIR.invokeExact(state, path, mode);
            return result < 0 ? -errno(state) : result;
        } catch (Throwable t) {
            throw broken(t);
        }
    }

    /** The address, or {@code -errno} (addresses of user space are positive). */
    static long mmap(long bytes) {
        MemorySegment state = STATE.get();
        try {
            long result =
                    (long)
                            MMAP.invokeExact(
                                    state,
                                    0L,
                                    bytes,
                                    PROT_READ_WRITE,
                                    MAP_PRIVATE_ANONYMOUS_NORESERVE,
                                    -1,
                                    0L);
            return result == -1 ? -errno(state) : result;
        } catch (Throwable t) {
            throw broken(t);
        }
    }

    static int munmap(long address, long bytes) {
        MemorySegment state = STATE.get();
        try {
            int result = (int) MUNMAP.invokeExact(state, address, bytes);
            return result < 0 ? -errno(state) : result;
        } catch (Throwable t) {
            throw broken(t);
        }
    }

    static int adviseHugePages(long address, long bytes) {
        MemorySegment state = STATE.get();
        try {
            int result = (int) MADVISE.invokeExact(state, address, bytes, MADV_HUGEPAGE);
            return result < 0 ? -errno(state) : result;
        } catch (Throwable t) {
            throw broken(t);
        }
    }

    private static int sync(MethodHandle call, int fd) {
        MemorySegment state = STATE.get();
        int result;
        do {
            try {
                result = (int) call.invokeExact(state, fd);
            } catch (Throwable t) {
                throw broken(t);
            }
        } while (result < 0 && errno(state) == EINTR);
        return result < 0 ? -errno(state) : result;
    }

    private static int onPath(MethodHandle call, MemorySegment path) {
        MemorySegment state = STATE.get();
        try {
            int result = (int) call.invokeExact(state, path);
            return result < 0 ? -errno(state) : result;
        } catch (Throwable t) {
            throw broken(t);
        }
    }

    private static int errno(MemorySegment state) {
        return (int) ERRNO.get(state, 0L);
    }

    /** A downcall throws only when it is wired wrongly or the virtual machine gives up. */
    private static Error broken(Throwable t) {
        return t instanceof Error e ? e : new AssertionError("downcall failed", t);
    }
}
