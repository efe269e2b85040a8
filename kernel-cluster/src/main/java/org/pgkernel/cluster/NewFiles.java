package org.pgkernel.cluster;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;
import org.agrona.collections.IntHashSet;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Files that a backend's transaction has made where WAL is minimal: what it puts there is not
 * logged, since nobody needs it if the transaction does not commit, and it is written and synced
 * before it does. Until then they count as unlogged: no hint's image is logged either, which redo
 * would put over the pages. A checkpoint before the commit writes them as any. One thread.
 * (PostgreSQL: pendingSyncHash and smgrDoPendingSyncs in storage.c; it logs small files whole
 * instead, wal_skip_threshold.)
 */
final class NewFiles {
    private final IntHashSet numbers = new IntHashSet();

    void add(int number) {
        numbers.add(number);
    }

    boolean contains(int number) {
        return !numbers.isEmpty() && numbers.contains(number);
    }

    /** Before the commit record. Those that a rollback to a savepoint has removed are passed by. */
    void sync(BufferPool pool, UnloggedNumbers unlogged, IntFunction<SmgrRelation> storage) {
        if (numbers.isEmpty()) {
            return;
        }
        List<SmgrRelation> files = new ArrayList<>();
        for (int number : numbers) {
            SmgrRelation file = storage.apply(number);
            if (file.exists(ForkNumber.MAIN)) {
                files.add(file);
            }
        }
        pool.flushRelations(files.toArray(SmgrRelation[]::new), files.size());
        for (SmgrRelation file : files) {
            for (ForkNumber fork : ForkNumber.values()) {
                if (file.exists(fork)) {
                    file.immediateSync(fork);
                }
            }
            unlogged.remove(file.relNumber());
        }
        numbers.clear();
    }

    /** The files of a transaction that did not commit go by other ways. */
    void clear() {
        numbers.clear();
    }
}
