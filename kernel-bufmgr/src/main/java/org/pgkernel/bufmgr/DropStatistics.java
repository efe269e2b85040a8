package org.pgkernel.bufmgr;

import java.util.ArrayList;
import java.util.List;

/** Totals over all drops of a pool. Written under the pool's own synchronisation; read at rest. */
public final class DropStatistics {
    private static final DropKind[] KINDS = DropKind.values();
    private static final DropPath[] PATHS = DropPath.values();
    private static final DropReason[] REASONS = DropReason.values();
    private static final DropStopReason[] STOPS = DropStopReason.values();
    private static final int CLASSES = KINDS.length * PATHS.length * REASONS.length * STOPS.length;
    private static final int CALLS = 0;
    private static final int PROBES = 1;
    private static final int BYTES = 2;
    private static final int BUFFERS = 3;
    private static final int NANOS = 4;
    private static final int COUNTERS = 5;

    /** Drop calls. */
    public long calls;

    /** Calls that scanned all descriptors. */
    public long fullScans;

    /** Calls that found their buffers by probes of the mapping table alone. */
    public long lookups;

    /** Calls that scanned fingerprints. */
    public long fingerprintScans;

    /** Calls that walked lists. */
    public long listWalks;

    /** Calls that knew at once that there was nothing. */
    public long nothingResident;

    /** Mapping table probes. */
    public long probes;

    /** Bytes of tags or fingerprints scanned. */
    public long bytesScanned;

    /** Buffers looked at closely whose fingerprint was a victim's and whose relation was not. */
    public long fingerprintCollisions;

    /** Buffers thrown away. */
    public long buffersDropped;

    /** Time in drop calls, nanoseconds. */
    public long nanos;

    /** Counters of each class of drops: kind, path, reason, stop. */
    private final long[] classes = new long[CLASSES * COUNTERS];

    void add(DropKind kind, DropWork work, int dropped, long elapsed) {
        calls++;
        switch (work.path) {
            case FULL_SCAN -> fullScans++;
            case LOOKUP -> lookups++;
            case FINGERPRINT_SCAN -> fingerprintScans++;
            case LIST_WALK -> listWalks++;
            case NOTHING_RESIDENT -> nothingResident++;
        }
        probes += work.probes;
        bytesScanned += work.bytesScanned;
        fingerprintCollisions += work.collisions;
        buffersDropped += dropped;
        nanos += elapsed;
        int at = index(kind, work.path, work.reason, work.stop);
        classes[at + CALLS]++;
        classes[at + PROBES] += work.probes;
        classes[at + BYTES] += work.bytesScanned;
        classes[at + BUFFERS] += dropped;
        classes[at + NANOS] += elapsed;
    }

    private static int index(DropKind kind, DropPath path, DropReason reason, DropStopReason stop) {
        int index =
                (kind.ordinal() * PATHS.length + path.ordinal()) * REASONS.length
                        + reason.ordinal();
        return (index * STOPS.length + stop.ordinal()) * COUNTERS;
    }

    /** What was decided, and how often; only what occurred, in the order of the enums. */
    public List<DropDecision> decisions() {
        List<DropDecision> found = new ArrayList<>();
        for (DropKind kind : KINDS) {
            for (DropPath path : PATHS) {
                for (DropReason reason : REASONS) {
                    for (DropStopReason stop : STOPS) {
                        int at = index(kind, path, reason, stop);
                        if (classes[at + CALLS] != 0) {
                            found.add(
                                    new DropDecision(
                                            kind,
                                            path,
                                            reason,
                                            stop,
                                            classes[at + CALLS],
                                            classes[at + PROBES],
                                            classes[at + BYTES],
                                            classes[at + BUFFERS],
                                            classes[at + NANOS]));
                        }
                    }
                }
            }
        }
        return found;
    }
}
