package org.pgkernel.bufmgr;

import org.agrona.concurrent.UnsafeBuffer;

/**
 * Remembers the hashes of the last pages that left, as many as it is told. A hash has a bucket of
 * eight words, one cache line; a full bucket forgets its oldest. Two pages of one hash count as one
 * page, which can do no harm but a bad choice.
 *
 * <pre>
 *  63                   32 31                    0
 *  +----------------------+----------------------+
 *  | hash                 | when it was put in   |   0: none
 *  +----------------------+----------------------+
 * </pre>
 *
 * "When" counts what was put in, modulo 2^32. Under the lock of the policy that owns it.
 */
final class GhostTable {
    private static final int WAYS = 8;

    private final UnsafeBuffer words;
    private final int buckets;
    private final int remembered;
    private int now;

    /**
     * @param words of {@link #bytes}
     * @param remembered how many hashes
     */
    GhostTable(UnsafeBuffer words, int remembered) {
        this.words = words;
        this.remembered = remembered;
        this.buckets = words.capacity() / (WAYS * Long.BYTES);
    }

    /** Half more than is remembered, as buckets fill unevenly. */
    static int bytes(int remembered) {
        return (int) ((remembered + remembered / 2L) / WAYS + 1) * WAYS * Long.BYTES;
    }

    void add(int hash) {
        if (++now == 0) {
            now = 1; // no word is 0
        }
        int bucket = bucket(hash);
        int oldest = bucket;
        int oldestAge = 0;
        for (int i = 0; i < WAYS; i++) {
            int offset = bucket + i * Long.BYTES;
            long word = words.getLong(offset);
            if (word == 0 || (int) (word >>> 32) == hash) {
                oldest = offset;
                break;
            }
            int age = now - (int) word;
            if (Integer.compareUnsigned(age, oldestAge) > 0) {
                oldest = offset;
                oldestAge = age;
            }
        }
        words.putLong(oldest, (long) hash << 32 | now & 0xFFFFFFFFL);
    }

    /** True if it is remembered; then it is forgotten. */
    boolean remove(int hash) {
        int bucket = bucket(hash);
        for (int i = 0; i < WAYS; i++) {
            int offset = bucket + i * Long.BYTES;
            long word = words.getLong(offset);
            if (word != 0 && (int) (word >>> 32) == hash) {
                words.putLong(offset, 0);
                return Integer.compareUnsigned(now - (int) word, remembered) < 0;
            }
        }
        return false;
    }

    private int bucket(int hash) {
        return (int) ((hash & 0xFFFFFFFFL) * buckets >>> 32) * (WAYS * Long.BYTES);
    }
}
