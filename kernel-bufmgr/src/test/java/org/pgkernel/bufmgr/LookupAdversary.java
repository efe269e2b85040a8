package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;
import static org.pgkernel.bufmgr.LookupParts.*;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.SplittableRandom;
import org.pgkernel.base.BufferTag;

/**
 * One reader's optimistic lookups and, between any two of its steps, the next step of somebody who
 * maps, unmaps, pins and locks: every interleaving that one seed can think of, in one thread, so
 * that a run repeats exactly. Steps of the changer are as small as its single stores: a lookup
 * meets half-written tags, locked headers, buffers between two chains.
 *
 * <p>After every lookup it checks what {@link PageLookup} promises, and that the pin counts are
 * what they must be.
 */
final class LookupAdversary implements AutoCloseable {
    /** What may be wrong. */
    enum Mutant {
        NONE,

        /** The tag changes and its generation does not. */
        GENERATION_NOT_CHANGED,

        /** The pin is taken if the state is the same, whatever the generation. */
        CAS_IGNORES_THE_GENERATION,

        /** The pin is added without comparing anything. */
        PIN_WITHOUT_COMPARING,

        /** The word is read after the tag, so it may be the next tag's. */
        TAG_READ_BEFORE_THE_WORD,

        /** The word is taken while its header is locked, and the lock is not waited for. */
        HEADER_LOCK_IGNORED,

        /** A walk that finds nothing is believed. */
        MISS_TAKEN_AS_PROOF,

        /** When the pin fails the new word is used without asking for its generation. */
        RETRY_FORGETS_THE_GENERATION
    }

    private static final int BUFFERS = 4;
    private static final int BLOCKS = 6;

    final Mutant mutant;
    private final SplittableRandom random;
    private final PoolMemory memory = memory(BUFFERS);
    private final BufferDescriptors descriptors = new Descriptors();
    private final BufferTable table = new Table();
    private final LookupParts parts =
            new LookupParts(BUFFERS, memory, descriptors, table, new Lookup());
    private final int[] blocks;

    /** The rest of what the changer has begun. */
    private final Deque<Runnable> steps = new ArrayDeque<>();

    /** Which buffer's chain link says that it holds the block, or -1: what the locks protect. */
    private final int[] bufferOf = new int[BLOCKS];

    /** What the changer may release; the reader's pin is his own during a lookup. */
    private final int[] pins = new int[BUFFERS];

    /** The block that is looked up now, and whether it was absent at some moment meanwhile. */
    private int wanted = -1;

    private boolean wasAbsent;
    private int interruptions;

    LookupAdversary(Mutant mutant, long seed) {
        this.mutant = mutant;
        random = new SplittableRandom(seed);
        blocks = random.nextBoolean() ? collidingBlocks(BLOCKS) : new int[] {0, 1, 2, 3, 4, 5};
        Arrays.fill(bufferOf, -1);
    }

    @Override
    public void close() {
        parts.close();
    }

    /** How often a lookup was interrupted. */
    int interruptions() {
        return interruptions;
    }

    /** One lookup, checked. */
    void lookUp() {
        while (steps.size() > random.nextInt(4)) {
            step(); // the lookup begins somewhere in the middle of what the changer does
        }
        if (steps.isEmpty() && random.nextInt(3) == 0) {
            begin();
        }
        int block = random.nextInt(BLOCKS);
        wanted = block;
        wasAbsent = bufferOf[block] < 0;
        int found = parts.pin(blocks[block]);
        wanted = -1;
        if (found == PageLookup.ABSENT) {
            require(wasAbsent, "a block that was there all the time was not found");
            return;
        }
        int buffer = found & ~PageLookup.PENDING;
        require(parts.holds(buffer, blocks[block]), "another block's buffer was pinned");
        finish();
        require(parts.holds(buffer, blocks[block]), "taken away from under the pin");
        pins[buffer]++;
        checkPins();
        if (random.nextInt(4) != 0) {
            descriptors.unpin(buffer);
            pins[buffer]--;
        }
    }

    private void checkPins() {
        for (int buffer = 0; buffer < BUFFERS; buffer++) {
            require(
                    refcount(descriptors.state(buffer)) == pins[buffer],
                    "pin count " + refcount(descriptors.state(buffer)) + " not " + pins[buffer]);
        }
    }

    private void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    /** Between two steps of the reader. */
    private void interrupted() {
        if (wanted < 0) {
            return;
        }
        interruptions++;
        if (steps.isEmpty() && random.nextInt(3) == 0) {
            begin();
        }
        for (int i = random.nextInt(8); i > 0 && !steps.isEmpty(); i--) {
            step();
        }
    }

    private void step() {
        int reader = wanted;
        wanted = -1; // the changer's own steps are not interrupted
        steps.removeFirst().run();
        wanted = reader;
        if (reader >= 0 && bufferOf[reader] < 0) {
            wasAbsent = true;
        }
    }

    /** The changer ends what it has begun: before the reader waits for a partition's lock. */
    private void finish() {
        while (!steps.isEmpty()) {
            step();
        }
    }

    private void begin() {
        int buffer = random.nextInt(BUFFERS);
        switch (random.nextInt(5)) {
            case 0 -> unmap(buffer);
            case 1 -> pinOrUnpin(buffer);
            case 2 -> onlyLock(buffer);
            default -> map(buffer, random.nextInt(BLOCKS));
        }
    }

    private void pinOrUnpin(int buffer) {
        steps.add(
                () -> {
                    if (pins[buffer] > 0) {
                        descriptors.unpin(buffer);
                        pins[buffer]--;
                    } else if (blockOf(buffer) >= 0) {
                        descriptors.pin(buffer);
                        pins[buffer]++;
                    }
                });
    }

    private void onlyLock(int buffer) {
        int[] state = new int[1];
        steps.add(() -> state[0] = descriptors.lockHeader(buffer));
        steps.add(() -> descriptors.unlockHeader(buffer, state[0]));
    }

    private int blockOf(int buffer) {
        for (int block = 0; block < BLOCKS; block++) {
            if (bufferOf[block] == buffer) {
                return block;
            }
        }
        return -1;
    }

    private void unmap(int buffer) {
        int old = blockOf(buffer);
        if (old < 0) {
            return;
        }
        int hash = hash(blocks[old]);
        int[] state = new int[1];
        steps.add(() -> table.lockExclusive(table.partition(hash)));
        steps.add(() -> state[0] = descriptors.lockHeader(buffer));
        steps.add(
                () -> {
                    if (refcount(state[0]) == 0) {
                        changeTag(buffer, old, -1, state[0]);
                    } else {
                        steps.add(() -> descriptors.unlockHeader(buffer, state[0]));
                    }
                    steps.add(() -> table.unlock(table.partition(hash)));
                });
    }

    private void map(int buffer, int block) {
        if (bufferOf[block] >= 0) {
            return;
        }
        int old = blockOf(buffer);
        int hash = hash(blocks[block]);
        int oldHash = old < 0 ? hash : hash(blocks[old]);
        int partition = table.partition(hash);
        int oldPartition = table.partition(oldHash);
        int[] state = new int[1];
        steps.add(() -> table.lockBoth(oldPartition, partition));
        steps.add(() -> state[0] = descriptors.lockHeader(buffer));
        steps.add(
                () -> {
                    if (refcount(state[0]) == 0) {
                        changeTag(buffer, old, block, state[0]);
                    } else {
                        steps.add(() -> descriptors.unlockHeader(buffer, state[0]));
                    }
                    steps.add(() -> table.unlockBoth(oldPartition, partition));
                });
    }

    /** C3 to C6, one store a step; -1 for no block. */
    private void changeTag(int buffer, int old, int block, int state) {
        if (old >= 0) {
            steps.add(
                    () -> {
                        table.remove(hash(blocks[old]), buffer);
                        bufferOf[old] = -1;
                    });
        }
        steps.add(() -> descriptors.nextGeneration(buffer));
        int[] tag = block < 0 ? new int[5] : new int[] {SPC, DB, REL, FORK, blocks[block]};
        for (int field = 0; field < 5; field++) {
            int offset = buffer * BufferTag.LENGTH + field * 4;
            int value = tag[field];
            steps.add(() -> memory.tags.putInt(offset, value));
        }
        int clean = state & ~(FLAG_MASK | USAGECOUNT_MASK);
        steps.add(
                () ->
                        descriptors.unlockHeader(
                                buffer,
                                block < 0 ? clean : clean | TAG_VALID | VALID | USAGECOUNT_ONE));
        if (block >= 0) {
            steps.add(
                    () -> {
                        table.insert(hash(blocks[block]), buffer);
                        bufferOf[block] = buffer;
                    });
        }
    }

    private final class Table extends BufferTable {
        Table() {
            super(memory, descriptors, BufferTable.bucketsFor(BUFFERS));
        }

        @Override
        int firstUnlocked(int hash) {
            interrupted();
            return super.firstUnlocked(hash);
        }

        @Override
        int nextUnlocked(int buffer) {
            interrupted();
            return super.nextUnlocked(buffer);
        }
    }

    private final class Descriptors extends BufferDescriptors {
        Descriptors() {
            super(memory, new DirtyBitmap(memory.dirtyBits, BUFFERS));
        }

        @Override
        void nextGeneration(int buffer) {
            if (mutant != Mutant.GENERATION_NOT_CHANGED) {
                super.nextGeneration(buffer);
            }
        }

        @Override
        long unlockedWord(int buffer) {
            interrupted();
            while ((word(buffer) & LOCKED) != 0) {
                if (mutant == Mutant.HEADER_LOCK_IGNORED) {
                    return word(buffer) & ~LOCKED;
                }
                step(); // its holder goes on
            }
            return super.unlockedWord(buffer);
        }

        @Override
        boolean hasTag(int buffer, int spc, int db, int rel, int fork, int block) {
            interrupted();
            return super.hasTag(buffer, spc, db, rel, fork, block);
        }

        @Override
        boolean pinUnchanged(int buffer, long word, int most) {
            interrupted();
            long now = word(buffer);
            return switch (mutant) {
                case CAS_IGNORES_THE_GENERATION ->
                        (int) now == (int) word && super.pinUnchanged(buffer, now, most);
                case PIN_WITHOUT_COMPARING -> {
                    memory.states.getAndAddLong(buffer << 3, REFCOUNT_ONE);
                    yield true;
                }
                case HEADER_LOCK_IGNORED ->
                        (now & ~LOCKED) == word && super.pinUnchanged(buffer, now, most);
                default -> super.pinUnchanged(buffer, word, most);
            };
        }
    }

    private final class Lookup extends OptimisticLookup {
        Lookup() {
            super(descriptors, table, new PartitionLockLookup(descriptors, table));
        }

        @Override
        int pinIfItHas(int buffer, int spc, int db, int rel, int fork, int block, int most) {
            return switch (mutant) {
                case TAG_READ_BEFORE_THE_WORD ->
                        descriptors.hasTag(buffer, spc, db, rel, fork, block)
                                        && descriptors.pinUnchanged(
                                                buffer, descriptors.unlockedWord(buffer), most)
                                ? buffer
                                : OTHER_TAG;
                case RETRY_FORGETS_THE_GENERATION -> {
                    long word = descriptors.unlockedWord(buffer);
                    if ((word & TAG_VALID) == 0
                            || !descriptors.hasTag(buffer, spc, db, rel, fork, block)) {
                        yield OTHER_TAG;
                    }
                    while (!descriptors.pinUnchanged(buffer, word, most)) {
                        word = descriptors.unlockedWord(buffer);
                    }
                    yield answer(buffer, (int) word);
                }
                default -> super.pinIfItHas(buffer, spc, db, rel, fork, block, most);
            };
        }

        @Override
        int pinLocked(int hash, int spc, int db, int rel, int fork, int block, int most) {
            interrupted();
            if (mutant == Mutant.MISS_TAKEN_AS_PROOF) {
                return ABSENT;
            }
            finish();
            int reader = wanted;
            wanted = -1; // under the lock nothing changes
            int found = super.pinLocked(hash, spc, db, rel, fork, block, most);
            wanted = reader;
            return found;
        }
    }
}
