package org.pgkernel.bufmgr;

import java.lang.ref.Cleaner;
import org.agrona.concurrent.UnsafeBuffer;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.StressOptions;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.base.Page;

/**
 * Pinning through the mapping table is linearizable: blocks behave like variables that a drop
 * resets, whatever buffers they move through, and the blocks that are resident like a set. Stress
 * mode: the words lie outside the heap, where the model checker does not see them.
 */
class MappingLincheckTest {
    @Param(name = "block", gen = IntGen.class, conf = "0:2")
    @Param(name = "value", gen = IntGen.class, conf = "1:9")
    public static class Blocks {
        /** Thousands of these are made. */
        private static final Cleaner MEMORY = Cleaner.create();

        private final PoolMemory memory =
                new PoolMemory(
                        16,
                        BufferTable.bucketsFor(16),
                        BufferTable.PARTITIONS,
                        Replacement.CLOCK_SWEEP);
        private final BufferDescriptors descriptors =
                new BufferDescriptors(memory, new DirtyBitmap(memory.dirtyBits, 16));
        private final LockTable content = new LockTable(memory.contentLocks, 3, new WaitTable(4));
        private final BufferIo io =
                new BufferIo(descriptors, null, lsn -> {}, false, memory.blocks);
        private final BufferTable table =
                new BufferTable(memory, descriptors, BufferTable.bucketsFor(16));
        private final WaitTable waits = new WaitTable(4);
        final PinRetention retention;
        final BufferAllocator allocator;

        public Blocks() {
            this(LookupStyle.OPTIMISTIC, Untracked.INSTANCE, PinRetention.When.NEVER);
        }

        Blocks(LookupStyle style, ResidencyTracker tracker, PinRetention.When when) {
            retention = new PinRetention(descriptors, waits, when);
            allocator =
                    new BufferAllocator(
                            descriptors,
                            table,
                            PageLookup.of(style, descriptors, table),
                            new BufferReplacement(
                                    memory,
                                    descriptors,
                                    new ClockSweep(descriptors, retention, 16),
                                    16),
                            io,
                            content,
                            new PinWaiters(descriptors, content, waits, retention),
                            tracker);
            PoolMemory blocks = memory;
            MEMORY.register(
                    this,
                    () -> {
                        blocks.release();
                        tracker.release();
                    });
        }

        int pin(int block) {
            int buffer = allocator.allocate(1, 2, 3, 0, block);
            if (buffer < 0) {
                buffer = ~buffer;
                io.zeroPage(buffer);
                io.terminate(buffer, false, BufferState.VALID);
            }
            return buffer;
        }

        void unpin(int buffer) {
            allocator.unpin(buffer);
        }

        private UnsafeBuffer page(int buffer) {
            return new UnsafeBuffer(io.address(buffer), Page.SIZE);
        }

        @Operation
        public int read(@Param(name = "block") int block) {
            int buffer = pin(block);
            content.lockShared(buffer);
            int value = page(buffer).getInt(100);
            content.unlock(buffer);
            unpin(buffer);
            return value;
        }

        @Operation
        public int write(@Param(name = "block") int block, @Param(name = "value") int value) {
            int buffer = pin(block);
            content.lockExclusive(buffer);
            int old = page(buffer).getInt(100);
            page(buffer).putInt(100, value);
            content.unlock(buffer);
            unpin(buffer);
            return old;
        }

        /**
         * Brings the block in. Does not tell whether it was there: a read or a write brings it in
         * at one moment and reads or writes it at another, so to the one who asks in between it
         * would be two operations. A drop may tell, as it waits for their pins.
         */
        @Operation
        public void touch(@Param(name = "block") int block) {
            unpin(pin(block));
        }

        /**
         * @return true when it was there
         */
        @Operation
        public boolean drop(@Param(name = "block") int block) {
            int buffer = allocator.probe(1, 2, 3, 0, block);
            if (buffer < 0) {
                return false;
            }
            int state = descriptors.lockHeader(buffer);
            if ((state & BufferState.TAG_VALID) != 0
                    && descriptors.hasTag(buffer, 1, 2, 3, 0, block)) {
                return allocator.invalidate(buffer, state);
            }
            descriptors.unlockHeader(buffer, state);
            return false;
        }
    }

    @Param(name = "block", gen = IntGen.class, conf = "0:2")
    @Param(name = "value", gen = IntGen.class, conf = "1:9")
    public static class ListedBlocks extends Blocks {
        public ListedBlocks() {
            super(LookupStyle.OPTIMISTIC, new BufferLists(16), PinRetention.When.NEVER);
        }
    }

    @Param(name = "block", gen = IntGen.class, conf = "0:2")
    @Param(name = "value", gen = IntGen.class, conf = "1:9")
    public static class CountedBlocks extends Blocks {
        public CountedBlocks() {
            super(LookupStyle.OPTIMISTIC, new ResidentForks(16, 16), PinRetention.When.NEVER);
        }
    }

    @Param(name = "block", gen = IntGen.class, conf = "0:2")
    @Param(name = "value", gen = IntGen.class, conf = "1:9")
    public static class BlocksUnderPartitionLocks extends Blocks {
        public BlocksUnderPartitionLocks() {
            super(LookupStyle.PARTITION_LOCK, Untracked.INSTANCE, PinRetention.When.NEVER);
        }
    }

    /** Each thread is a backend that retains every pin. */
    @Param(name = "block", gen = IntGen.class, conf = "0:2")
    @Param(name = "value", gen = IntGen.class, conf = "1:9")
    public static class RetainedBlocks extends Blocks {
        private final ThreadLocal<RetainedPins> mine = ThreadLocal.withInitial(retention::pins);

        public RetainedBlocks() {
            super(LookupStyle.OPTIMISTIC, Untracked.INSTANCE, PinRetention.When.ALWAYS);
        }

        @Override
        int pin(int block) {
            int buffer = mine.get().pin(1, 2, 3, 0, block);
            if (buffer < 0) {
                buffer = super.pin(block);
                if (mine.get().pin(buffer)) {
                    allocator.unpin(buffer); // counted already
                }
            }
            return buffer;
        }

        @Override
        void unpin(int buffer) {
            mine.get().release(buffer);
        }
    }

    @ParameterizedTest
    @ValueSource(
            classes = {
                Blocks.class,
                ListedBlocks.class,
                CountedBlocks.class,
                BlocksUnderPartitionLocks.class,
                RetainedBlocks.class
            })
    void blocksBehaveLikeVariables(Class<?> blocks) {
        new StressOptions()
                .iterations(5)
                .invocationsPerIteration(500)
                .threads(3)
                .actorsPerThread(3)
                .check(blocks);
    }
}
