package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import java.util.SplittableRandom;

/**
 * Backends that retain every pin, and between any two steps of one what others do: use the page,
 * take idle pins back, evict the page, wait for its cleanup lock, end. All in one thread, so that a
 * run repeats exactly. Steps are single loads, stores and compare-and-sets of slots; what comes in
 * between is interrupted in its turn, three deep.
 *
 * <p>Checked: a page that a backend has pinned stays in its buffer; the pin count is what backends,
 * slots and waiter make it; a cleanup lock is had only alone; a waiter who is alone has been woken;
 * nothing is left at the end.
 */
final class RetentionAdversary implements AutoCloseable {
    /** What may be wrong. */
    enum Mutant {
        NONE,

        /** As if the store of the slot were seen after the look at the flag: no fence. */
        FLAG_READ_BEFORE_THE_SLOT_IS_IDLE,

        /** The owner does not look whether somebody waits. */
        FLAG_NOT_LOOKED_AT,

        /** An idle pin is taken by a look and a store. */
        TAKEN_BACK_WITHOUT_CAS,

        /** A pin that is taken back is taken from the count twice. */
        TAKEN_BACK_TWICE,

        /** A pin that its owner uses is taken back. */
        ACTIVE_PIN_TAKEN_BACK,

        /** The owner uses his idle pin again by a store. */
        USED_AGAIN_WITHOUT_CAS,

        /** A backend ends and leaves its idle pins. */
        LEFT_AT_THE_END,

        /** Who waits for a cleanup lock waits for idle pins too. */
        WAITER_TAKES_NOTHING_BACK,

        /** He takes them back before his flag is set, and not after. */
        WAITER_LOOKS_BEFORE_HIS_FLAG
    }

    private static final int BUFFERS = 3;
    private static final int BACKENDS = 3;
    private static final int DEPTH = 3;

    private final Mutant mutant;
    private final SplittableRandom random;
    private final PoolMemory memory = LookupParts.memory(BUFFERS);
    private final Descriptors descriptors = new Descriptors();
    private final LockTable content = new LockTable(memory.contentLocks, 3, new WaitTable(4));
    private final Waits waits = new Waits();
    private final Retention retention = new Retention();
    private final PinWaiters cleanup = new PinWaiters(descriptors, content, waits, retention);
    private final Backend[] backends = new Backend[BACKENDS];

    /** The block that each buffer holds: a number never used before. */
    private final int[] blocks = new int[BUFFERS];

    private int nextBlock;
    private int depth;
    private int interruptions;

    /** The buffer whose cleanup lock somebody waits for, step by step; -1. */
    private int awaited = -1;

    /** The buffer for whose cleanup lock {@link PinWaiters} waits; -1. */
    private int locking = -1;

    private boolean woken;
    int reused;
    int takenBack;
    int waited;

    RetentionAdversary(Mutant mutant, long seed) {
        this.mutant = mutant;
        random = new SplittableRandom(seed);
        for (int buffer = 0; buffer < BUFFERS; buffer++) {
            rename(buffer);
        }
        for (int i = 0; i < BACKENDS; i++) {
            backends[i] = new Backend();
        }
    }

    @Override
    public void close() {
        memory.release();
    }

    int interruptions() {
        return interruptions;
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private void rename(int buffer) {
        int state = descriptors.lockHeader(buffer);
        blocks[buffer] = nextBlock++;
        descriptors.setTag(buffer, 1, 1, 1, 0, blocks[buffer]);
        int clean = state & ~(FLAG_MASK | USAGECOUNT_MASK);
        descriptors.unlockHeader(buffer, clean | TAG_VALID | VALID);
    }

    /** One thing that somebody does, with whatever comes in between; then everything is checked. */
    void act() {
        if (random.nextInt(4) == 0) {
            lockForCleanup(random.nextInt(BUFFERS));
        } else {
            something();
        }
        check();
    }

    private void something() {
        Backend backend = backends[random.nextInt(BACKENDS)];
        int buffer = random.nextInt(BUFFERS);
        switch (random.nextInt(8)) {
            case 0, 1, 2 -> backend.pin(buffer);
            case 3, 4 -> backend.release(buffer);
            case 5 -> takenBack += retention.takeBack(buffer);
            case 6 -> evict(buffer);
            default -> {
                if (random.nextInt(3) == 0) {
                    backend.end();
                } else {
                    awaitCleanup(buffer);
                }
            }
        }
    }

    private void interrupted() {
        if (depth == DEPTH) {
            return;
        }
        depth++;
        interruptions++;
        for (int i = random.nextInt(3); i > 0; i--) {
            something();
        }
        depth--;
    }

    private boolean isHeld(int buffer) {
        for (Backend backend : backends) {
            if (backend.holds[buffer]) {
                return true;
            }
        }
        return false;
    }

    /** As the hand and the allocator: whoever is not pinned gets another page. */
    private void evict(int buffer) {
        takenBack += retention.takeBack(buffer);
        if (refcount(descriptors.state(buffer)) == 0 && !descriptors.isLocked(buffer)) {
            require(!isHeld(buffer), "evicted under a pin");
            rename(buffer);
        }
    }

    /** Begins to wait, as {@link PinWaiters} does; {@link Waits#wake} goes on. */
    private void awaitCleanup(int buffer) {
        if (awaited >= 0 || locking >= 0 || descriptors.isLocked(buffer)) {
            return;
        }
        awaited = buffer;
        descriptors.pin(buffer);
        int state = descriptors.lockHeader(buffer);
        descriptors.unlockHeader(buffer, state | PIN_COUNT_WAITER);
        retention.takeBack(buffer);
        waited++;
        lookWhetherAlone(buffer);
    }

    private void lookWhetherAlone(int buffer) {
        if (awaited == buffer && refcount(descriptors.state(buffer)) == 1) {
            require(!isHeld(buffer), "cleanup lock beside a pin");
            int state = descriptors.lockHeader(buffer);
            descriptors.unlockHeader(buffer, state & ~PIN_COUNT_WAITER);
            awaited = -1;
            descriptors.unpin(buffer);
        }
    }

    /** The real waiter, with the others at work between his steps. */
    private void lockForCleanup(int buffer) {
        if (awaited >= 0) {
            return;
        }
        locking = buffer;
        woken = false;
        descriptors.pin(buffer);
        depth = DEPTH - 1;
        cleanup.lockForCleanup(buffer);
        depth = 0;
        require(!isHeld(buffer), "cleanup lock beside a pin");
        content.unlock(buffer);
        locking = -1;
        retention.unpin(buffer);
        require((descriptors.state(buffer) & PIN_COUNT_WAITER) == 0, "flag left");
    }

    private void check() {
        require(awaited < 0 || isHeld(awaited), "a waiter was forgotten");
        for (int buffer = 0; buffer < BUFFERS; buffer++) {
            int pins = awaited == buffer ? 1 : 0;
            for (Backend backend : backends) {
                pins += (backend.holds[buffer] ? 1 : 0) + backend.retained.idle(buffer);
            }
            require(refcount(descriptors.state(buffer)) == pins, "pin count");
        }
    }

    /** All backends end. */
    void finish() {
        depth = DEPTH; // nobody comes in between any more
        for (Backend backend : backends) {
            for (int buffer = 0; buffer < BUFFERS; buffer++) {
                backend.release(buffer);
            }
            backend.end();
        }
        require(awaited < 0, "a waiter was forgotten");
        for (int buffer = 0; buffer < BUFFERS; buffer++) {
            require(refcount(descriptors.state(buffer)) == 0, "pin left");
        }
    }

    private final class Backend {
        RetainedPins retained = new Pins();
        final boolean[] holds = new boolean[BUFFERS];

        /** In the middle of something: then its owner does nothing else. */
        private boolean busy;

        void pin(int buffer) {
            if (busy || holds[buffer]) {
                return;
            }
            busy = true;
            int block = blocks[buffer];
            int found = retained.pin(1, 1, 1, 0, block);
            if (found >= 0) {
                reused++;
                require(found == buffer, "another page's buffer");
                holds[buffer] = true;
                require(blocks[buffer] == block, "renamed under a retained pin");
            } else if (blocks[buffer] == block && !descriptors.isLocked(buffer)) {
                descriptors.pin(buffer);
                holds[buffer] = true;
                if (retained.pin(buffer)) {
                    retention.unpin(buffer);
                }
                require(blocks[buffer] == block, "renamed under a pin");
            }
            busy = false;
        }

        void release(int buffer) {
            if (!busy && holds[buffer]) {
                busy = true;
                holds[buffer] = false;
                retained.release(buffer);
                busy = false;
            }
        }

        void end() {
            for (boolean held : holds) {
                if (held) {
                    return;
                }
            }
            if (!busy) {
                busy = true;
                retained.close();
                retained = new Pins();
                busy = false;
            }
        }
    }

    private final class Descriptors extends BufferDescriptors {
        Descriptors() {
            super(memory, new DirtyBitmap(memory.dirtyBits, BUFFERS));
        }

        boolean isLocked(int buffer) {
            return (word(buffer) & LOCKED) != 0;
        }

        @Override
        boolean hasTag(int buffer, int spc, int db, int rel, int fork, int block) {
            boolean has = super.hasTag(buffer, spc, db, rel, fork, block);
            interrupted();
            return has;
        }

        @Override
        void unlockHeader(int buffer, int state) {
            boolean flagged =
                    locking == buffer
                            && (state & PIN_COUNT_WAITER) != 0
                            && (word(buffer) & PIN_COUNT_WAITER) == 0;
            if (flagged && mutant == Mutant.WAITER_LOOKS_BEFORE_HIS_FLAG) {
                super.unlockHeader(buffer, state & ~PIN_COUNT_WAITER);
                retention.takeBackNow(buffer);
                interrupted();
                lockHeader(buffer);
                super.unlockHeader(buffer, state(buffer) | PIN_COUNT_WAITER);
                return;
            }
            super.unlockHeader(buffer, state);
            if (flagged) {
                interrupted();
            }
        }
    }

    private final class Waits extends WaitTable {
        Waits() {
            super(4);
        }

        @Override
        void enter(int index) {
            interrupted();
        }

        @Override
        void leave(int index) {}

        /** The others go on, until the last of them must have woken him. */
        @Override
        void await(int index) {
            waited++;
            woken = false;
            for (int i = 0; i < 20 && !woken; i++) {
                interrupted();
            }
            depth = DEPTH; // nobody comes in between any more
            for (Backend backend : backends) {
                if (!woken) {
                    backend.release(index);
                }
            }
            depth = DEPTH - 1;
            require(woken, "a waiter was forgotten");
        }

        @Override
        void wake(int index) {
            if (index == locking) {
                woken = true;
            }
            lookWhetherAlone(index);
        }
    }

    private final class Retention extends PinRetention {
        Retention() {
            super(descriptors, waits, When.ALWAYS);
        }

        @Override
        int takeBack(int buffer) {
            boolean waiter = locking == buffer && awaited < 0 && depth == DEPTH - 1;
            return waiter
                            && (mutant == Mutant.WAITER_TAKES_NOTHING_BACK
                                    || mutant == Mutant.WAITER_LOOKS_BEFORE_HIS_FLAG)
                    ? 0
                    : super.takeBack(buffer);
        }

        void takeBackNow(int buffer) {
            super.takeBack(buffer);
        }
    }

    private final class Pins extends RetainedPins {
        Pins() {
            super(retention, descriptors);
        }

        @Override
        boolean activate(int i, long idle) {
            if (mutant == Mutant.USED_AGAIN_WITHOUT_CAS) {
                put(i, idle | 1);
                return true;
            }
            return super.activate(i, idle);
        }

        @Override
        void makeIdle(int i, long idle) {
            int buffer = (int) (idle >>> 1) - 1;
            switch (mutant) {
                case FLAG_NOT_LOOKED_AT -> put(i, idle);
                case FLAG_READ_BEFORE_THE_SLOT_IS_IDLE -> {
                    boolean awaited = isAwaited(buffer);
                    interrupted();
                    put(i, idle);
                    if (awaited) {
                        giveBack(i, idle);
                    }
                }
                default -> super.makeIdle(i, idle);
            }
        }

        @Override
        boolean giveBack(int i, long idle) {
            if (mutant == Mutant.TAKEN_BACK_WITHOUT_CAS) {
                if (idle == 0 || get(i) != idle) {
                    return false;
                }
                put(i, 0);
                retention.unpin((int) (idle >>> 1) - 1);
                return true;
            }
            boolean taken = super.giveBack(i, idle);
            if (taken && mutant == Mutant.TAKEN_BACK_TWICE) {
                retention.unpin((int) (idle >>> 1) - 1);
            }
            return taken;
        }

        @Override
        void close() {
            if (mutant == Mutant.LEFT_AT_THE_END) {
                for (int i = 16; i < 16 + SLOTS; i++) {
                    put(i, 0);
                }
            }
            super.close();
        }

        @Override
        long get(int i) {
            long slot = super.get(i);
            interrupted();
            return mutant == Mutant.ACTIVE_PIN_TAKEN_BACK ? slot & ~1 : slot;
        }

        @Override
        void put(int i, long slot) {
            interrupted();
            super.put(i, slot);
            interrupted();
        }

        @Override
        boolean change(int i, long from, long to) {
            interrupted();
            boolean changed =
                    super.change(i, from, to)
                            || mutant == Mutant.ACTIVE_PIN_TAKEN_BACK
                                    && to == 0
                                    && super.change(i, from | 1, to);
            interrupted(); // before the pin count is changed
            return changed;
        }
    }
}
