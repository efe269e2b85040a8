package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.BufferTag;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Each policy beside a plain model of its rules, over lists: whatever is read, pinned and dropped,
 * every page that comes in takes the very buffer that the model chose.
 */
@Timeout(120)
class PolicyModelTest {
    private static final int BLOCKS = 60;
    private static final int STEPS = 4_000;

    @TempDir Path directory;

    /** What all models are told of: pins and uses of each buffer, and its page, -1 without one. */
    private static final class Buffers {
        final int[] pins;
        final int[] uses;
        final int[] pages;
        final Deque<Integer> free = new ArrayDeque<>();
        int highWater;

        Buffers(int nbuffers) {
            pins = new int[nbuffers];
            uses = new int[nbuffers];
            pages = new int[nbuffers];
            Arrays.fill(pages, -1);
        }

        int find(int page) {
            for (int b = 0; b < pages.length; b++) {
                if (pages[b] == page) {
                    return b;
                }
            }
            return -1;
        }
    }

    private abstract static class Model {
        final Buffers of;

        Model(Buffers of) {
            this.of = of;
        }

        /** The victim that nothing but the policy decides. */
        abstract int victim(int page);

        abstract void taken(int buffer, int page);

        abstract int firstUses();

        final int choose(int page) {
            if (!of.free.isEmpty()) {
                int buffer = of.free.pop();
                if (of.pages[buffer] < 0) {
                    taken(buffer, page);
                    return buffer;
                }
            }
            if (of.highWater < of.pins.length) {
                taken(of.highWater, page);
                return of.highWater++;
            }
            return victim(page);
        }
    }

    private static final class ClockModel extends Model {
        private int hand;

        ClockModel(Buffers of) {
            super(of);
        }

        @Override
        int victim(int page) {
            for (; ; ) {
                int b = hand;
                hand = (hand + 1) % of.pins.length;
                if (of.pins[b] == 0 && of.uses[b]-- == 0) {
                    return b;
                }
            }
        }

        @Override
        void taken(int buffer, int page) {}

        @Override
        int firstUses() {
            return 1;
        }
    }

    /** Oldest first. */
    private static final class SieveModel extends Model {
        private final List<Integer> queue = new ArrayList<>();
        private int hand;

        SieveModel(Buffers of) {
            super(of);
        }

        @Override
        int victim(int page) {
            for (; ; hand++) {
                hand %= queue.size();
                int b = queue.get(hand);
                if (of.pins[b] == 0 && of.uses[b] == 0) {
                    queue.remove(hand); // the hand is on the next one now
                    if (hand == queue.size()) {
                        hand = 0; // it was the newest: begin again at the oldest
                    }
                    queue.add(b);
                    return b;
                }
                if (of.pins[b] == 0) {
                    of.uses[b] = 0;
                }
            }
        }

        @Override
        void taken(int buffer, int page) {
            int at = queue.indexOf(buffer);
            if (at >= 0) {
                queue.remove(at);
                if (at < hand) {
                    hand--;
                } else if (hand == queue.size()) {
                    hand = 0;
                }
            }
            queue.add(buffer);
        }

        @Override
        int firstUses() {
            return 0;
        }
    }

    private static final class S3Model extends Model {
        private final Deque<Integer> small = new ArrayDeque<>();
        private final Deque<Integer> main = new ArrayDeque<>();
        private final GhostTable ghosts;
        private final int target;

        S3Model(Buffers of) {
            super(of);
            int n = of.pins.length;
            target = Math.max(1, n / 10);
            int remembered = n - n / 10;
            ghosts =
                    new GhostTable(
                            new UnsafeBuffer(new byte[GhostTable.bytes(remembered)]), remembered);
        }

        private boolean allPinned(Deque<Integer> queue) {
            return queue.stream().allMatch(b -> of.pins[b] > 0);
        }

        @Override
        int victim(int page) {
            for (; ; ) {
                boolean fromSmall = small.size() >= target && !allPinned(small) || allPinned(main);
                Deque<Integer> queue = fromSmall ? small : main;
                int b = queue.removeFirst();
                if (of.pins[b] > 0) {
                    queue.add(b);
                } else if (fromSmall && of.uses[b] >= 2) {
                    of.uses[b] = 0;
                    main.add(b);
                } else if (!fromSmall && of.uses[b] >= 1) {
                    of.uses[b] = Math.min(of.uses[b], 3) - 1;
                    main.add(b);
                } else {
                    if (fromSmall && of.pages[b] >= 0) {
                        ghosts.add(hash(of.pages[b]));
                    }
                    enter(b, page);
                    return b;
                }
            }
        }

        private void enter(int buffer, int page) {
            (ghosts.remove(hash(page)) ? main : small).add(buffer);
        }

        @Override
        void taken(int buffer, int page) {
            small.remove(buffer);
            main.remove(buffer);
            enter(buffer, page);
        }

        @Override
        int firstUses() {
            return 0;
        }
    }

    /** Pages of relation 1 are their block, those of relation 2 come after them. */
    private static int hash(int page) {
        return page < BLOCKS
                ? BufferTag.hash(PoolFixture.SPC, PoolFixture.DB, 1, 0, page)
                : BufferTag.hash(PoolFixture.SPC, PoolFixture.DB, 2, 0, page - BLOCKS);
    }

    @ParameterizedTest
    @EnumSource(Replacement.class)
    void everyPageTakesTheBufferThatTheModelChose(Replacement policy) throws Exception {
        for (int run = 0; run < 6; run++) {
            long seed = System.nanoTime();
            int nbuffers = new int[] {16, 23, 40}[run % 3];
            try {
                run(policy, nbuffers, new Random(seed), directory.resolve(policy + "-" + run));
            } catch (AssertionError e) {
                throw new AssertionError("seed " + seed + " nbuffers " + nbuffers, e);
            }
        }
    }

    private void run(Replacement policy, int nbuffers, Random random, Path at) {
        try (PoolFixture f = new PoolFixture(at, false)) {
            BufferPoolOptions options =
                    BufferPoolOptions.of(nbuffers).withStrategy(DropStrategy.FULL_SCAN);
            f.pool(options, new DropParts());
            SmgrRelation[] relations = {
                f.create(1, ForkNumber.MAIN, BLOCKS), f.create(2, ForkNumber.MAIN, 6)
            };
            f.pool.close();
            f.pool(options.withReplacement(policy), new DropParts()); // an empty one
            Buffers buffers = new Buffers(nbuffers);
            Model model =
                    switch (policy) {
                        case CLOCK_SWEEP -> new ClockModel(buffers);
                        case SIEVE -> new SieveModel(buffers);
                        case S3_FIFO -> new S3Model(buffers);
                    };
            List<Integer> pinned = new ArrayList<>();
            for (int step = 0; step < STEPS; step++) {
                int kind = random.nextInt(100);
                if (kind == 0) {
                    drop(f, relations[1], buffers, pinned);
                } else if (kind < 20 && !pinned.isEmpty()) {
                    int buffer = pinned.remove(random.nextInt(pinned.size()));
                    f.pool.release(buffer);
                    buffers.pins[buffer]--;
                } else {
                    int page = page(random);
                    int buffer = use(f, relations, buffers, model, page, step);
                    // Those of relation 2 are not kept pinned, as it is dropped now and then.
                    if (kind < 40 && page < BLOCKS && pinned.size() < nbuffers - 2) {
                        pinned.add(buffer);
                        buffers.pins[buffer]++;
                    } else {
                        f.pool.release(buffer);
                    }
                }
            }
            pinned.forEach(f.pool::release);
            PoolInspection.check(f.pool);
        }
    }

    /** Half of the reads go to few pages. */
    private static int page(Random random) {
        return random.nextBoolean() ? random.nextInt(10) : random.nextInt(BLOCKS + 6);
    }

    private static int use(
            PoolFixture f,
            SmgrRelation[] relations,
            Buffers buffers,
            Model model,
            int page,
            int step) {
        int expected = buffers.find(page);
        if (expected >= 0) {
            buffers.uses[expected] = Math.min(buffers.uses[expected] + 1, 5);
        } else {
            expected = model.choose(page);
            buffers.pages[expected] = page;
            buffers.uses[expected] = model.firstUses();
        }
        SmgrRelation relation = relations[page < BLOCKS ? 0 : 1];
        int block = page < BLOCKS ? page : page - BLOCKS;
        int buffer = f.pool.read(relation, ForkNumber.MAIN, block, ReadMode.NORMAL);
        assertEquals(expected, buffer, "step " + step);
        assertEquals(
                buffers.uses[buffer],
                BufferState.usageCount(f.pool.descriptors.state(buffer)),
                "step " + step);
        return buffer;
    }

    private static void drop(
            PoolFixture f, SmgrRelation relation, Buffers buffers, List<Integer> pinned) {
        f.pool.dropRelations(new SmgrRelation[] {relation}, 1);
        for (int b = 0; b < buffers.pages.length; b++) {
            if (buffers.pages[b] >= BLOCKS) {
                buffers.pages[b] = -1;
                buffers.uses[b] = 0;
                if (!buffers.free.contains(b)) {
                    buffers.free.push(b);
                }
            }
        }
        assertTrue(pinned.stream().noneMatch(b -> buffers.pages[b] < 0));
    }
}
