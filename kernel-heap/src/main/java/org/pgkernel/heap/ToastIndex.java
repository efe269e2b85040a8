package org.pgkernel.heap;

import org.agrona.collections.Long2LongHashMap;

/**
 * Where the chunks of a TOAST table are: in memory, in place of the index that PostgreSQL keeps on
 * disk (chunk_id, chunk_seq). All backends share it.
 *
 * <p>Chunks of one value mostly stand side by side, so only those are entered that do not follow
 * the one before on the same page; a reader tries the next line pointer first. An entry is a hint:
 * whoever follows it looks whether it is the chunk, since values that are gone keep their entries
 * until the index is made anew, from a scan of the table: when it is first used, when a chunk is
 * not found (another handle of the table may have added it), and when more than half of what it
 * knows was deleted.
 */
final class ToastIndex {
    /** What {@link #find} says when it does not know. */
    static final long NONE = -1;

    private static final int FEW = 1000;

    /** Key: chunk_id, chunk_seq. Under the monitor, as all here. */
    private final Long2LongHashMap places = new Long2LongHashMap(NONE);

    private boolean built;
    private int deleted;

    /** Goes through all chunks. */
    @FunctionalInterface
    interface Source {
        void forEach(ToastIndex index);
    }

    private static long key(int valueId, int sequence) {
        return (long) valueId << 32 | sequence & 0xFFFFFFFFL;
    }

    /**
     * A chunk's place, or {@link #NONE}: not known, or behind the chunk before it.
     *
     * @param source for an index that was not made yet
     */
    synchronized long find(int valueId, int sequence, Source source) {
        if (!built) {
            places.clear();
            deleted = 0;
            source.forEach(this);
            built = true;
        }
        return places.get(key(valueId, sequence));
    }

    /**
     * The chunk is in its page. The caller holds no page lock. (An index that is made meanwhile
     * waits for this, or its scan finds the chunk.)
     *
     * @param previous the place of the value's chunk before it, or invalid
     */
    synchronized void added(int valueId, int sequence, long tid, long previous) {
        if (sequence == 0 || tid != previous + 1) {
            places.put(key(valueId, sequence), tid);
        }
    }

    /** The value was deleted; its entries are of no use, once that has committed. */
    synchronized void deleted() {
        deleted++;
        if (deleted > FEW && deleted > places.size() / 2) {
            forget();
        }
    }

    /** The next one who asks makes it anew. */
    synchronized void forget() {
        built = false;
    }

    /** Entries; for tests. */
    synchronized int size() {
        return places.size();
    }
}
