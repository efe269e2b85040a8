package org.pgkernel.cli.bench;

import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.cli.SharedBuffers;

/**
 * How large a pool is: a part of the trace's pages, as {@code 5%}, or as PostgreSQL writes it.
 *
 * @param percent of the pages; 0 if {@code buffers} is set
 */
record PoolSize(double percent, int buffers) {
    /**
     * @throws IllegalArgumentException in one sentence
     */
    static PoolSize parse(String text) {
        String trimmed = text.strip();
        if (!trimmed.endsWith("%")) {
            return new PoolSize(0, SharedBuffers.parse(trimmed).buffers());
        }
        double percent;
        try {
            percent = Double.parseDouble(trimmed.substring(0, trimmed.length() - 1));
        } catch (NumberFormatException e) {
            percent = Double.NaN;
        }
        if (!(percent > 0 && percent <= 1000)) {
            throw new IllegalArgumentException(
                    "not a part of the pages: \"" + text + "\" (write 5%, or 128MB)");
        }
        return new PoolSize(percent, 0);
    }

    /** Buffers for a trace of so many pages, within what a pool may have. */
    int buffersFor(int pages) {
        long wanted = buffers > 0 ? buffers : Math.round(pages * percent / 100);
        return (int) Math.clamp(wanted, BufferPool.MIN_BUFFERS, BufferPool.MAX_BUFFERS);
    }
}
