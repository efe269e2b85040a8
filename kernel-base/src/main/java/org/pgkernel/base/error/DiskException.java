package org.pgkernel.base.error;

/** The operating system refused a file operation; {@link #errno()} tells why. */
public final class DiskException extends KernelException {
    public static final int ENOENT = 2;
    public static final int EINTR = 4;
    public static final int EIO = 5;
    public static final int EEXIST = 17;
    public static final int ENOSPC = 28;

    private final int errno;

    /**
     * @param message what was tried, and on which file
     * @param errno the system's error number, 0 when there is none (a short read, say)
     */
    public DiskException(String message, int errno) {
        super(errno == 0 ? message : message + ": " + text(errno), null);
        this.errno = errno;
    }

    /**
     * @param what what was tried, without the file's name
     * @param file the file's path; the message ends in it
     * @param errno the system's error number, 0 when there is none
     */
    public DiskException(String what, String file, int errno) {
        super((errno == 0 ? what : what + ": " + text(errno)) + " file=" + file, null);
        this.errno = errno;
    }

    public int errno() {
        return errno;
    }

    /** Only a full disk is worth another try. */
    @Override
    public boolean mayRetry() {
        return errno == ENOSPC;
    }

    private static String text(int errno) {
        return switch (errno) {
            case 1 -> "operation not permitted";
            case ENOENT -> "no such file or directory";
            case EIO -> "input/output error";
            case 9 -> "bad file descriptor";
            case 12 -> "out of memory";
            case 13 -> "permission denied";
            case EEXIST -> "file exists";
            case 20 -> "not a directory";
            case 21 -> "is a directory";
            case 22 -> "invalid argument";
            case 24 -> "too many open files";
            case 27 -> "file too large";
            case ENOSPC -> "no space left on device";
            case 30 -> "read-only file system";
            case 36 -> "file name too long";
            case 39 -> "directory not empty";
            case 122 -> "disk quota exceeded";
            default -> "errno " + errno;
        };
    }
}
