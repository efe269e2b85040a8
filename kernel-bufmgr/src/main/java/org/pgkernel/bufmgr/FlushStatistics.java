package org.pgkernel.bufmgr;

/**
 * Totals over all flushes of relations and databases. Written under the pool's own synchronisation;
 * read at rest.
 */
public final class FlushStatistics {
    private final long[] calls = new long[FlushPath.values().length];

    /** Mapping table probes. */
    public long probes;

    /** Dirty buffers of the pool that were looked at by walking the dirty bitmap. */
    public long dirtyBuffersSeen;

    /** Bytes of fingerprints scanned. */
    public long bytesScanned;

    /** Pages that were written. */
    public long buffersWritten;

    /** Flush calls that found their buffers so. */
    public long calls(FlushPath path) {
        return calls[path.ordinal()];
    }

    void add(FlushPath path, FlushWork work, int written) {
        calls[path.ordinal()]++;
        probes += work.probes;
        dirtyBuffersSeen += work.dirtySeen;
        bytesScanned += work.bytesScanned;
        buffersWritten += written;
    }
}
