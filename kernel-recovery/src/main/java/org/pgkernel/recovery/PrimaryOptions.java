package org.pgkernel.recovery;

import org.pgkernel.wal.ImageCompression;

/**
 * How a primary writes WAL.
 *
 * @param walBuffers bytes, a power of two (wal_buffers)
 * @param compression of page images (wal_compression)
 * @param relations which relations survive a crash: hints of the others are not logged
 */
public record PrimaryOptions(
        int walBuffers, ImageCompression compression, UnloggedFilter relations) {
    /** Knows relations whose pages no WAL speaks of. Called by many threads. */
    @FunctionalInterface
    public interface UnloggedFilter {
        boolean isUnlogged(int spc, int db, int rel);
    }
}
