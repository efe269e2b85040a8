package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.pgkernel.base.BufferTag;
import org.pgkernel.base.RelFileLocator;

/** What the pool holds, for tests: walks every descriptor and allocates freely. Meaningful while nobody uses the pool. */
final class PoolInspection {
    /** A buffer that has a tag. */
    record Descriptor(
            int buffer,
            RelFileLocator relation,
            int fork,
            int block,
            int refcount,
            int usageCount,
            boolean valid,
            boolean dirty,
            boolean ioError) {}

    private PoolInspection() {}

    /** All buffers with a tag, in the order of the pool; every descriptor is looked at. */
    static List<Descriptor> descriptors(BufferPool pool) {
        List<Descriptor> found = new ArrayList<>();
        for (int buffer = 0; buffer < pool.nbuffers(); buffer++) {
            int state = pool.descriptors.state(buffer);
            if ((state & TAG_VALID) != 0) {
                found.add(describe(pool, buffer, state));
            }
        }
        return found;
    }

    private static Descriptor describe(BufferPool pool, int buffer, int state) {
        BufferDescriptors d = pool.descriptors;
        return new Descriptor(
                buffer,
                new RelFileLocator(d.spc(buffer), d.db(buffer), d.rel(buffer)),
                d.fork(buffer),
                d.block(buffer),
                refcount(state),
                usageCount(state),
                (state & VALID) != 0,
                (state & DIRTY) != 0,
                (state & IO_ERROR) != 0);
    }

    /** Checks the pool's invariants BUF-1 to BUF-6 at rest; the error says which is broken. */
    static void check(BufferPool pool) {
        Set<String> tags = new HashSet<>();
        int tagged = 0;
        for (int buffer = 0; buffer < pool.nbuffers(); buffer++) {
            int state = pool.descriptors.state(buffer);
            require((state & (LOCKED | IO_IN_PROGRESS)) == 0, "BUF-1", "header lock or I/O left", buffer);
            require(!pool.content.isHeld(buffer), "BUF-1", "content lock left", buffer);
            require(usageCount(state) <= MAX_USAGE_COUNT, "BUF-2", "usage count too large", buffer);
            require((state & DIRTY) == 0 || (state & VALID) != 0, "BUF-3", "dirty but not valid", buffer);
            require((state & VALID) == 0 || (state & TAG_VALID) != 0, "BUF-3", "valid without a tag", buffer);
            require((state & DIRTY) == 0 || pool.dirty.isSet(buffer), "BUF-4", "dirty without its bit", buffer);
            require(pool.table.isChained(buffer) == ((state & TAG_VALID) != 0), "BUF-5", "tagged or chained only", buffer);
            if ((state & TAG_VALID) == 0) {
                require(pool.descriptors.hasTag(buffer, 0, 0, 0, 0, 0), "BUF-5", "tag left", buffer);
                require(
                        buffer >= pool.sweep.highWater() || pool.sweep.isInFreeList(buffer) || refcount(state) > 0,
                        "BUF-6", "lost: no tag, not free", buffer);
                continue;
            }
            tagged++;
            Descriptor descriptor = describe(pool, buffer, state);
            require(
                    tags.add(descriptor.relation() + "/" + descriptor.fork() + "/" + descriptor.block()),
                    "BUF-5", "two buffers hold one block", buffer);
            int hash = pool.descriptors.hash(buffer);
            int found = pool.table.lookup(
                    hash,
                    descriptor.relation().spcOid(),
                    descriptor.relation().dbOid(),
                    descriptor.relation().relNumber(),
                    descriptor.fork(),
                    descriptor.block());
            require(found == buffer, "BUF-5", "not found by its tag", buffer);
        }
        require(!pool.table.anyLockHeld(), "BUF-1", "partition lock left", -1);
        checkChains(pool, tagged);
        pool.sweep.freeListLength();
    }

    private static void checkChains(BufferPool pool, int tagged) {
        int chained = 0;
        for (int bucket = 0; bucket < pool.table.buckets(); bucket++) {
            for (int b = pool.table.firstOf(bucket); b >= 0; b = pool.table.nextOf(b)) {
                chained++;
                require(chained <= tagged, "BUF-5", "loop or stranger in a chain", b);
                require((pool.descriptors.hash(b) & pool.table.buckets() - 1) == bucket, "BUF-5", "wrong bucket", b);
            }
        }
        require(chained == tagged, "BUF-5", "tagged buffers missing in the table", -1);
    }

    /** A hash that changes with the tag alone; so tests can build collisions. */
    static int partitionOf(int spc, int db, int rel, int fork, int block) {
        return BufferTable.partition(BufferTag.hash(spc, db, rel, fork, block));
    }

    private static void require(boolean holds, String invariant, String what, int buffer) {
        if (!holds) {
            throw new AssertionError(invariant + ": " + what + " buffer=" + buffer);
        }
    }
}
