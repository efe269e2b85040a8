package org.pgkernel.base.error;

/**
 * What can go wrong in the kernel because of the world (our own bugs are assertions). Unchecked,
 * closed, and each kind says whether the caller may try again. Messages are one sentence and end in
 * the place: {@code file=… rel=… fork=… block=… lsn=…}.
 */
public abstract sealed class KernelException extends RuntimeException
        permits DamagedDataException,
                RefusedException,
                DiskException,
                NoFreeBufferException,
                DeadlockException,
                LockNotAvailableException,
                SerializationException,
                KernelStoppedException {
    protected KernelException(String message, Throwable cause) {
        super(message, cause);
    }

    /** True if the same call may succeed later without anybody repairing anything. */
    public abstract boolean mayRetry();
}
