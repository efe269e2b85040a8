package org.pgkernel.bufmgr;

import java.util.Locale;

/**
 * Drop calls of a pool that were decided alike.
 *
 * @param calls how many
 * @param probes of the mapping table, by all of them
 * @param bytesScanned of fingerprints or tags
 * @param buffersDropped by all of them
 * @param nanos spent in all of them
 */
public record DropDecision(
        DropKind kind,
        DropPath path,
        DropReason reason,
        DropStopReason stop,
        long calls,
        long probes,
        long bytesScanned,
        long buffersDropped,
        long nanos) {
    /**
     * One line: {@code relations: lookup (few blocks), range covered: 200 calls, 1000 probes, 0
     * bytes scanned, 900 buffers}.
     */
    @Override
    public String toString() {
        return words(kind)
                + ": "
                + words(path)
                + " ("
                + words(reason)
                + "), "
                + words(stop)
                + ": "
                + calls
                + " calls, "
                + probes
                + " probes, "
                + bytesScanned
                + " bytes scanned, "
                + buffersDropped
                + " buffers";
    }

    static String words(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }
}
