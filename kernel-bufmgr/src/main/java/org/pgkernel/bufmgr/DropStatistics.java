package org.pgkernel.bufmgr;

/** Totals over all drops of a pool. Written under the pool's own synchronisation; read at rest. */
public final class DropStatistics {
    /** Drop calls. */
    public long calls;
    /** Calls that scanned all descriptors. */
    public long fullScans;
    /** Calls that probed the mapping table. */
    public long lookups;
    /** Mapping table probes. */
    public long probes;
    /** Buffers thrown away. */
    public long buffersDropped;
    /** Time in drop calls, nanoseconds. */
    public long nanos;
}
