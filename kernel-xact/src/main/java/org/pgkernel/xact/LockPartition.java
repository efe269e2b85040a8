package org.pgkernel.xact;

import java.util.ArrayDeque;
import java.util.concurrent.locks.ReentrantLock;
import org.agrona.collections.Object2ObjectHashMap;

/**
 * A part of the lock table: the locks whose tags fall here, under one lock. Who takes several takes
 * them by number. (PostgreSQL: LockHashPartitionLock.)
 */
final class LockPartition {
    final ReentrantLock lock = new ReentrantLock();

    // Under the lock.
    private final Object2ObjectHashMap<LockTag, LockEntry> entries =
            new Object2ObjectHashMap<>(64, 0.6f);
    private final ArrayDeque<LockEntry> unused = new ArrayDeque<>();

    /** Null if nobody holds it or waits for it. */
    LockEntry find(LockTag tag) {
        assert lock.isHeldByCurrentThread();
        return entries.get(tag);
    }

    LockEntry findOrMake(LockTag tag) {
        LockEntry entry = find(tag);
        if (entry == null) {
            entry = unused.isEmpty() ? new LockEntry(this) : unused.pop();
            entry.tag.set(tag);
            entries.put(entry.tag, entry);
        }
        return entry;
    }

    void forgetIfUnused(LockEntry entry) {
        if (entry.isUnused()) {
            entries.remove(entry.tag);
            unused.push(entry);
        }
    }

    int size() {
        return entries.size();
    }
}
