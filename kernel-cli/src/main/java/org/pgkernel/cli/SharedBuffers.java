package org.pgkernel.cli;

import org.pgkernel.base.Page;
import org.pgkernel.bufmgr.BufferPool;

/**
 * A pool size as PostgreSQL writes it: {@code 128MB}, {@code 10GB}, or a bare number of buffers.
 *
 * @param text as the user wrote it
 * @param buffers number of 8 KiB buffers
 */
public record SharedBuffers(String text, int buffers) {
    /**
     * @throws IllegalArgumentException in one sentence, when the text is no size or out of range
     */
    public static SharedBuffers parse(String text) {
        String trimmed = text.strip();
        int digits = 0;
        while (digits < trimmed.length() && Character.isDigit(trimmed.charAt(digits))) {
            digits++;
        }
        long unit =
                switch (trimmed.substring(digits)) {
                    case "" -> Page.SIZE;
                    case "kB" -> 1L << 10;
                    case "MB" -> 1L << 20;
                    case "GB" -> 1L << 30;
                    case "TB" -> 1L << 40;
                    default -> 0;
                };
        if (digits == 0 || digits > 9 || unit == 0) {
            throw new IllegalArgumentException(
                    "not a pool size: \""
                            + text
                            + "\" (write 128MB, 10GB, or a number of 8kB buffers)");
        }
        long buffers = Long.parseLong(trimmed.substring(0, digits)) * unit / Page.SIZE;
        if (buffers < BufferPool.MIN_BUFFERS || buffers > BufferPool.MAX_BUFFERS) {
            throw new IllegalArgumentException(
                    "pool size "
                            + text
                            + " is "
                            + buffers
                            + " buffers; it must be between "
                            + BufferPool.MIN_BUFFERS
                            + " and "
                            + BufferPool.MAX_BUFFERS);
        }
        return new SharedBuffers(trimmed, (int) buffers);
    }

    @Override
    public String toString() {
        return text;
    }
}
