package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.pgkernel.base.BufferTag;
import org.pgkernel.base.RelFileLocator;

/**
 * What the pool holds, for tests: walks every descriptor and allocates freely. Meaningful while
 * nobody uses the pool.
 */
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
                pool.retention.used(buffer, refcount(state)),
                usageCount(state),
                (state & VALID) != 0,
                (state & DIRTY) != 0,
                (state & IO_ERROR) != 0);
    }

    /** Checks the pool's invariants BUF-1 to BUF-6 at rest; the error says which is broken. */
    static void check(BufferPool pool) {
        checkDescriptors(pool);
        checkTracker(pool);
    }

    /** The same without what the drop strategy keeps: BUF-1 to BUF-8. */
    static void checkDescriptors(BufferPool pool) {
        Set<String> tags = new HashSet<>();
        for (int buffer = 0; buffer < pool.nbuffers(); buffer++) {
            int state = pool.descriptors.state(buffer);
            checkState(pool, buffer, state);
            if ((state & TAG_VALID) == 0) {
                checkUntagged(pool, buffer, state);
            } else {
                checkTagged(pool, buffer, state, tags);
            }
        }
        require(!pool.table.anyLockHeld(), "BUF-1", "partition lock left", -1);
        require(!pool.extension.anyLockHeld(), "BUF-1", "extension lock left", -1);
        checkChains(pool, tags.size());
        pool.replacement.freeListLength();
        String fault = pool.replacement.policy().fault(pool.replacement.highWater());
        require(fault == null, "BUF-19", fault, -1);
    }

    private static void checkState(BufferPool pool, int buffer, int state) {
        require(
                (state & (LOCKED | IO_IN_PROGRESS)) == 0,
                "BUF-1",
                "header lock or I/O left",
                buffer);
        require(!pool.content.isHeld(buffer), "BUF-1", "content lock left", buffer);
        require(usageCount(state) <= MAX_USAGE_COUNT, "BUF-2", "usage count too large", buffer);
        require(
                (state & DIRTY) == 0 || (state & VALID) != 0,
                "BUF-3",
                "dirty but not valid",
                buffer);
        require(
                (state & VALID) == 0 || (state & TAG_VALID) != 0,
                "BUF-3",
                "valid without a tag",
                buffer);
        require(
                (state & DIRTY) == 0 || pool.dirty.isReachable(buffer),
                "BUF-4",
                "dirty, and the dirty bitmap does not tell",
                buffer);
        require(
                pool.table.isChained(buffer) == ((state & TAG_VALID) != 0),
                "BUF-5",
                "tagged or chained only",
                buffer);
    }

    private static void checkUntagged(BufferPool pool, int buffer, int state) {
        require(pool.descriptors.hasTag(buffer, 0, 0, 0, 0, 0), "BUF-5", "tag left", buffer);
        require(pool.retention.slots(buffer) == 0, "BUF-24", "pin of no page retained", buffer);
        require(
                buffer >= pool.replacement.highWater()
                        || pool.replacement.isInFreeList(buffer)
                        || refcount(state) > 0,
                "BUF-6",
                "lost: no tag, not free",
                buffer);
    }

    private static void checkTagged(BufferPool pool, int buffer, int state, Set<String> tags) {
        Descriptor descriptor = describe(pool, buffer, state);
        require(
                tags.add(
                        descriptor.relation() + "/" + descriptor.fork() + "/" + descriptor.block()),
                "BUF-5",
                "two buffers hold one block",
                buffer);
        int found =
                pool.table.lookup(
                        pool.descriptors.hash(buffer),
                        descriptor.relation().spcOid(),
                        descriptor.relation().dbOid(),
                        descriptor.relation().relNumber(),
                        descriptor.fork(),
                        descriptor.block());
        require(found == buffer, "BUF-5", "not found by its tag", buffer);
        int retained = pool.retention.slots(buffer);
        require(
                retained <= refcount(pool.descriptors.state(buffer)),
                "BUF-24",
                "more retained pins than pins",
                buffer);
        require(
                retained == 0 || descriptor.valid(),
                "BUF-24",
                "pin of an invalid page retained",
                buffer);
    }

    /** What the strategy keeps is what a walk over all descriptors finds. */
    private static void checkTracker(BufferPool pool) {
        Map<String, List<Descriptor>> forks = new HashMap<>();
        for (Descriptor d : descriptors(pool)) {
            forks.computeIfAbsent(d.relation() + "/" + d.fork(), fork -> new ArrayList<>()).add(d);
        }
        switch (pool.tracker) {
            case Untracked none -> {}
            case ResidentForks resident -> checkCounts(pool, resident, forks);
            case BufferLists lists -> checkLists(lists, forks);
        }
    }

    private static void checkCounts(
            BufferPool pool, ResidentForks resident, Map<String, List<Descriptor>> forks) {
        require(!resident.anyLockHeld(), "BUF-1", "lock of a fork or database left", -1);
        require(
                resident.size() == forks.size(),
                "BUF-9",
                "a fork counted without pages, or one that is not counted",
                -1);
        require(
                resident.isConsistent(),
                "BUF-23",
                "a fork's entry neither has pages nor is retired, or is wrong about it",
                -1);
        require(
                resident.forks().entriesTouched() <= ForkTable.capacity(pool.nbuffers()),
                "BUF-9",
                "more forks than buffers",
                -1);
        for (List<Descriptor> pages : forks.values()) {
            Descriptor first = pages.getFirst();
            RelFileLocator r = first.relation();
            long residents = resident.residents(r.spcOid(), r.dbOid(), r.relNumber(), first.fork());
            require(
                    ResidentForks.pages(residents) == pages.size(),
                    "BUF-9",
                    "wrong count of a fork",
                    first.buffer());
            for (Descriptor d : pages) {
                require(
                        Integer.compareUnsigned(d.block(), ResidentForks.end(residents)) < 0,
                        "BUF-9",
                        "page past the end of its fork's pages",
                        d.buffer());
                require(
                        resident.fingerprints().get(d.buffer())
                                == resident.fingerprints().of(r.spcOid(), r.dbOid(), r.relNumber()),
                        "BUF-11",
                        "wrong fingerprint",
                        d.buffer());
            }
        }
        for (int buffer = 0; buffer < pool.nbuffers(); buffer++) {
            require(
                    (pool.descriptors.state(buffer) & TAG_VALID) != 0
                            || resident.fingerprints().get(buffer) == 0,
                    "BUF-11",
                    "fingerprint without a page",
                    buffer);
        }
        Map<Integer, Set<String>> databases = new HashMap<>();
        for (List<Descriptor> pages : forks.values()) {
            Descriptor d = pages.getFirst();
            databases
                    .computeIfAbsent(d.relation().dbOid(), db -> new HashSet<>())
                    .add(d.relation() + "/" + d.fork());
        }
        for (Map.Entry<Integer, Set<String>> database : databases.entrySet()) {
            require(
                    listed(resident, database.getKey()).equals(database.getValue()),
                    "BUF-12",
                    "list of database " + database.getKey() + " is not its forks",
                    -1);
        }
    }

    private static Set<String> listed(ResidentForks resident, int db) {
        DropWork work = DropWork.begin();
        resident.addDatabase(db, work);
        Set<String> listed = new HashSet<>();
        for (int i = 0; i < work.forks; i++) {
            String fork =
                    new RelFileLocator(work.forkSpc(i), work.forkDb(i), work.forkRel(i))
                            + "/"
                            + work.forkNumber(i);
            require(listed.add(fork), "BUF-12", "fork twice in its database's list", -1);
        }
        return listed;
    }

    private static void checkLists(BufferLists lists, Map<String, List<Descriptor>> forks) {
        require(!lists.forks().anyLockHeld(), "BUF-1", "lock of a fork's list left", -1);
        require(
                lists.forks().chained().cardinality() == forks.size(),
                "BUF-10",
                "a list without buffers, or a fork without a list",
                -1);
        DropWork work = DropWork.begin();
        for (List<Descriptor> pages : forks.values()) {
            Descriptor first = pages.getFirst();
            RelFileLocator r = first.relation();
            int length = lists.copy(r.spcOid(), r.dbOid(), r.relNumber(), first.fork(), work);
            Set<Integer> expected = new HashSet<>();
            pages.forEach(d -> expected.add(d.buffer()));
            Set<Integer> listed = new HashSet<>();
            for (int i = 0; i < length; i++) {
                listed.add(work.buffers[i]);
            }
            require(
                    length == listed.size()
                            && listed.equals(expected)
                            && lists.isConsistent(
                                    r.spcOid(), r.dbOid(), r.relNumber(), first.fork()),
                    "BUF-10",
                    "list is not the fork's buffers",
                    first.buffer());
        }
    }

    private static void checkChains(BufferPool pool, int tagged) {
        int chained = 0;
        for (int bucket = 0; bucket < pool.table.buckets(); bucket++) {
            for (int b = pool.table.firstOf(bucket); b >= 0; b = pool.table.nextOf(b)) {
                chained++;
                require(chained <= tagged, "BUF-5", "loop or stranger in a chain", b);
                require(
                        (pool.descriptors.hash(b) & pool.table.buckets() - 1) == bucket,
                        "BUF-5",
                        "wrong bucket",
                        b);
            }
        }
        require(chained == tagged, "BUF-5", "tagged buffers missing in the table", -1);
    }

    /** A hash that changes with the tag alone; so tests can build collisions. */
    static int partitionOf(BufferPool pool, int spc, int db, int rel, int fork, int block) {
        return pool.table.partition(BufferTag.hash(spc, db, rel, fork, block));
    }

    private static void require(boolean holds, String invariant, String what, int buffer) {
        if (!holds) {
            throw new AssertionError(invariant + ": " + what + " buffer=" + buffer);
        }
    }
}
