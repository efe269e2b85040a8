package org.pgkernel.bufmgr;

import java.util.Arrays;
import org.agrona.collections.Long2LongHashMap;

/**
 * Collects buffers with their tags and hands them out by tablespace, relation, fork and block, so
 * that files are written from front to back. Two sorts of plain longs: first the relation forks,
 * then the blocks of each. The arrays are kept for the next checkpoint unless they have become
 * large. Not final: tests let it run out of memory. (PostgreSQL: CkptSortItem,
 * ckpt_buforder_comparator.)
 */
class WriteOrder {
    private static final int KEEP = 1 << 17;
    private static final int BUFFER_BITS = 26;

    private final Long2LongHashMap groupSizes = new Long2LongHashMap(0);
    private int[] tablespaces = new int[4];
    private int tablespaceCount;

    /**
     * Tablespace, relation, fork of the i-th buffer as first packed: the tablespace is its place in
     * {@link #tablespaces}.
     */
    private long[] groups = new long[1024];

    /** Block and buffer of the i-th buffer. */
    private long[] items = new long[1024];

    private long[] ordered = new long[1024];
    private int count;

    /** After {@link #sort}: where each tablespace begins in the order, and the end. */
    private int[] starts = new int[5];

    void clear() {
        count = 0;
        tablespaceCount = 0;
        groupSizes.clear();
        if (items.length > KEEP) {
            groups = new long[1024];
            items = new long[1024];
            ordered = new long[1024];
            groupSizes.compact();
        }
    }

    void add(int buffer, int spc, int rel, int fork, int block) {
        if (count == items.length) {
            groups = Arrays.copyOf(groups, count * 2);
            items = Arrays.copyOf(items, count * 2);
        }
        groups[count] = (long) tablespace(spc) << 34 | (rel & 0xFFFFFFFFL) << 2 | fork;
        items[count] = (block & 0xFFFFFFFFL) << BUFFER_BITS | buffer;
        count++;
    }

    private int tablespace(int spc) {
        for (int i = 0; i < tablespaceCount; i++) {
            if (tablespaces[i] == spc) {
                return i;
            }
        }
        if (tablespaceCount == tablespaces.length) {
            tablespaces = Arrays.copyOf(tablespaces, tablespaceCount * 2);
        }
        tablespaces[tablespaceCount] = spc;
        return tablespaceCount++;
    }

    int count() {
        return count;
    }

    /** After {@link #sort}: the i-th buffer to write. */
    int buffer(int i) {
        return (int) ordered[i] & (1 << BUFFER_BITS) - 1;
    }

    /** How many tablespaces there are. */
    int tablespaces() {
        return tablespaceCount;
    }

    /** After {@link #sort}: where the i-th tablespace begins; for the number of them, the end. */
    int tablespaceStart(int i) {
        return starts[i];
    }

    void sort() {
        renumberTablespaces();
        for (int i = 0; i < count; i++) {
            groupSizes.put(groups[i], groupSizes.get(groups[i]) + 1);
        }
        long[] keys = new long[groupSizes.size()];
        int n = 0;
        Long2LongHashMap.KeyIterator iterator = groupSizes.keySet().iterator();
        while (iterator.hasNext()) {
            keys[n++] = iterator.nextValue();
        }
        Arrays.sort(keys);
        if (ordered.length < count) {
            ordered = new long[items.length];
        }
        // Each group's place, moved on as it fills. Biased by 1: the map's missing value is 0.
        if (starts.length <= tablespaceCount) {
            starts = new int[tablespaces.length + 1];
        }
        starts[0] = 0;
        long start = 0;
        for (long key : keys) {
            long size = groupSizes.get(key);
            groupSizes.put(key, start + 1);
            start += size;
            starts[(int) (key >>> 34) + 1] = (int) start;
        }
        for (int i = 0; i < count; i++) {
            long place = groupSizes.get(groups[i]);
            ordered[(int) place - 1] = items[i];
            groupSizes.put(groups[i], place + 1);
        }
        int from = 0;
        for (long key : keys) {
            int end = (int) groupSizes.get(key) - 1;
            Arrays.sort(ordered, from, end);
            from = end;
        }
    }

    /** Replaces order of appearance by order of oid. */
    private void renumberTablespaces() {
        if (tablespaceCount < 2) {
            return;
        }
        int[] rank = new int[tablespaceCount];
        for (int i = 0; i < tablespaceCount; i++) {
            for (int j = 0; j < tablespaceCount; j++) {
                if (Integer.compareUnsigned(tablespaces[j], tablespaces[i]) < 0) {
                    rank[i]++;
                }
            }
        }
        long low = (1L << 34) - 1;
        for (int i = 0; i < count; i++) {
            groups[i] = (long) rank[(int) (groups[i] >>> 34)] << 34 | groups[i] & low;
        }
    }
}
