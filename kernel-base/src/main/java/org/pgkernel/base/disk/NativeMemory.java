package org.pgkernel.base.disk;

import org.pgkernel.base.error.RefusedException;

/**
 * Large memory taken from the system directly: zeroed, page-aligned, and resident only where it is
 * touched, so that a reservation of a hundred gigabytes costs microseconds. Whoever reserves also
 * releases. Thread-safe.
 */
public final class NativeMemory {
    private NativeMemory() {}

    /**
     * Reserves memory that reads as zeros.
     *
     * @param bytes size, more than 0; the system rounds up to its page size
     * @return the address, a multiple of the system's page size
     * @throws RefusedException when the system has no room for it
     */
    public static long reserve(long bytes) {
        if (bytes <= 0) {
            throw new RefusedException("cannot reserve " + bytes + " bytes of memory");
        }
        long address = LibC.mmap(bytes);
        if (address < 0) {
            throw new RefusedException(
                    "the system does not let us reserve "
                            + bytes
                            + " bytes ("
                            + (bytes >> 20)
                            + " MB) of memory: errno="
                            + -address);
        }
        return address;
    }

    /**
     * Gives back what {@link #reserve} returned, with the size it was asked for. Nobody may touch
     * it afterwards.
     */
    public static void release(long address, long bytes) {
        int result = LibC.munmap(address, bytes);
        assert result == 0 : "munmap failed: errno=" + -result;
    }

    /** Asks for large system pages in the range; a hint, whose refusal costs speed only. */
    public static void adviseHuge(long address, long bytes) {
        LibC.adviseHugePages(address, bytes);
    }
}
