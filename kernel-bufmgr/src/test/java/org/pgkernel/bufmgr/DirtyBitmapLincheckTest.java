package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.BiFunction;
import org.agrona.concurrent.AtomicBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.jetbrains.kotlinx.lincheck.Actor;
import org.jetbrains.kotlinx.lincheck.execution.ExecutionScenario;
import org.jetbrains.lincheck.LincheckAssertionError;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A bit that was set can be found from the top at every instant until it is cleared, whatever
 * others set and clear in the same word, group and top: the three levels together are linearizable
 * as plain bits. By model checking, with the words in an array of the heap where the checker sees
 * them. Bitmaps with a fault each are found out.
 */
class DirtyBitmapLincheckTest {
    /** Two of one word, one of the next word, one of the next group. */
    private static final int[] BUFFERS = {0, 1, 64, 2048};

    private static final int NBUFFERS = 4096;

    /** The three operations that the bitmap makes, on words of the heap. */
    static final class HeapWords extends UnsafeBuffer {
        private final AtomicLongArray words = new AtomicLongArray(DirtyBitmap.bytes(NBUFFERS) >> 3);

        HeapWords() {
            super(0L, 0);
        }

        @Override
        public long getLongVolatile(int index) {
            return words.get(index >> 3);
        }

        @Override
        public void putLongVolatile(int index, long value) {
            words.set(index >> 3, value);
        }

        @Override
        public boolean compareAndSetLong(int index, long expected, long value) {
            return words.compareAndSet(index >> 3, expected, value);
        }
    }

    @Param(name = "which", gen = IntGen.class, conf = "0:3")
    public static class Bits {
        private final DirtyBitmap bitmap;

        public Bits() {
            this(DirtyBitmap::new);
        }

        Bits(BiFunction<AtomicBuffer, Integer, DirtyBitmap> bitmap) {
            this.bitmap = bitmap.apply(new HeapWords(), NBUFFERS);
        }

        @Operation
        public void set(@Param(name = "which") int which) {
            bitmap.set(BUFFERS[which]);
        }

        @Operation
        public void clear(@Param(name = "which") int which) {
            bitmap.clear(BUFFERS[which]);
        }

        @Operation
        public boolean isReachable(@Param(name = "which") int which) {
            return bitmap.isReachable(BUFFERS[which]);
        }
    }

    /** What they are compared with. */
    public static class PlainBits {
        private final boolean[] bits = new boolean[BUFFERS.length];

        public void set(int which) {
            bits[which] = true;
        }

        public void clear(int which) {
            bits[which] = false;
        }

        public boolean isReachable(int which) {
            return bits[which];
        }
    }

    @Test
    void threeLevelsBehaveLikePlainBits() {
        options(30, 1000).check(Bits.class);
    }

    /** A faulty bitmap, and a scenario in which its fault shows. */
    enum Fault {
        SUMMARY_CLEARED_THEN_LOOKED_AT_AGAIN(
                SummaryClearedThenLookedAtAgain.class,
                List.of(set(0)),
                List.of(clear(0)),
                List.of(set(1), isReachable(1))),
        WORD_SET_BEFORE_ITS_GROUP(
                WordSetBeforeItsGroup.class,
                List.of(),
                List.of(set(0)),
                List.of(set(1), isReachable(1))),
        GROUP_SET_WITHOUT_THE_LOCK(
                GroupSetWithoutTheLock.class,
                List.of(),
                List.of(set(0), isReachable(0)),
                List.of(set(1), clear(1))),
        TOP_CLEARED_TOO_SOON(
                TopClearedTooSoon.class,
                List.of(set(1), set(2)),
                List.of(clear(2)),
                List.of(isReachable(1)));

        final Class<?> faulty;
        final ExecutionScenario scenario;

        Fault(Class<?> faulty, List<Actor> before, List<Actor> one, List<Actor> other) {
            this.faulty = faulty;
            scenario = new ExecutionScenario(before, List.of(one, other), List.of(), null);
        }
    }

    private static Actor set(int which) {
        return actor("set", which);
    }

    private static Actor clear(int which) {
        return actor("clear", which);
    }

    private static Actor isReachable(int which) {
        return actor("isReachable", which);
    }

    private static Actor actor(String operation, int which) {
        try {
            return new Actor(Bits.class.getMethod(operation, int.class), List.of(which));
        } catch (NoSuchMethodException e) {
            throw new AssertionError(e);
        }
    }

    @ParameterizedTest
    @EnumSource(Fault.class)
    void aFaultIsFound(Fault fault) {
        assertThrows(
                LincheckAssertionError.class,
                () -> options(0, 5000).addCustomScenario(fault.scenario).check(fault.faulty));
    }

    /** The fault is what is found, not the scenario. */
    @ParameterizedTest
    @EnumSource(Fault.class)
    void withoutTheFaultTheScenarioPasses(Fault fault) {
        options(0, 5000).addCustomScenario(fault.scenario).check(Bits.class);
    }

    /** The obvious way without a lock: for an instant a bit that was set long ago is not found. */
    public static class SummaryClearedThenLookedAtAgain extends Bits {
        public SummaryClearedThenLookedAtAgain() {
            super(
                    (memory, nbuffers) ->
                            new DirtyBitmap(memory, nbuffers) {
                                @Override
                                boolean clearLast(int buffer, int offset, long bit) {
                                    if (!this.memory.compareAndSetLong(offset, bit, 0)) {
                                        return false;
                                    }
                                    int at = groupOffset(buffer);
                                    long group = this.memory.getLongVolatile(at);
                                    this.memory.compareAndSetLong(
                                            at, group, group & ~groupBit(buffer));
                                    if (this.memory.getLongVolatile(offset) != 0) {
                                        this.memory.compareAndSetLong(
                                                at, group & ~groupBit(buffer), group);
                                    }
                                    return true;
                                }
                            });
        }
    }

    /** Then who sets another bit of the word returns before the group tells of it. */
    public static class WordSetBeforeItsGroup extends Bits {
        public WordSetBeforeItsGroup() {
            super(
                    (memory, nbuffers) ->
                            new DirtyBitmap(memory, nbuffers) {
                                @Override
                                boolean setFirst(int buffer, int offset, long bit) {
                                    long group = lockGroup(groupOffset(buffer));
                                    boolean first = this.memory.compareAndSetLong(offset, 0, bit);
                                    if (group == 0) {
                                        setTop(buffer);
                                    }
                                    this.memory.putLongVolatile(
                                            groupOffset(buffer), group | groupBit(buffer));
                                    return first;
                                }
                            });
        }
    }

    public static class GroupSetWithoutTheLock extends Bits {
        public GroupSetWithoutTheLock() {
            super(
                    (memory, nbuffers) ->
                            new DirtyBitmap(memory, nbuffers) {
                                @Override
                                boolean setFirst(int buffer, int offset, long bit) {
                                    setTop(buffer);
                                    int at = groupOffset(buffer);
                                    long group = this.memory.getLongVolatile(at);
                                    return this.memory.compareAndSetLong(
                                                    at, group, group | groupBit(buffer))
                                            && this.memory.compareAndSetLong(offset, 0, bit);
                                }
                            });
        }
    }

    /** Though the group has other words that are not 0. */
    public static class TopClearedTooSoon extends Bits {
        public TopClearedTooSoon() {
            super(
                    (memory, nbuffers) ->
                            new DirtyBitmap(memory, nbuffers) {
                                @Override
                                boolean clearLast(int buffer, int offset, long bit) {
                                    clearTop(buffer);
                                    return super.clearLast(buffer, offset, bit);
                                }
                            });
        }
    }

    private static ModelCheckingOptions options(int iterations, int invocations) {
        return new ModelCheckingOptions()
                .iterations(iterations)
                .sequentialSpecification(PlainBits.class)
                .invocationsPerIteration(invocations)
                .threads(2)
                .actorsPerThread(3)
                .actorsBefore(2)
                .actorsAfter(0);
    }
}
