package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;
import static org.pgkernel.bufmgr.BufferState.*;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The state word: its two halves do not disturb each other. */
class BufferDescriptorsTest {
    private static final int BUFFER = 7;

    private final PoolMemory memory =
            new PoolMemory(16, BufferTable.bucketsFor(16), BufferTable.PARTITIONS);
    private final BufferDescriptors descriptors =
            new BufferDescriptors(memory, new DirtyBitmap(memory.dirtyBits, 16));

    @AfterEach
    void release() {
        memory.release();
    }

    private long generation() {
        return descriptors.word(BUFFER) >>> 32;
    }

    private void retag(int block) {
        int state = descriptors.lockHeader(BUFFER);
        descriptors.setTag(BUFFER, 1, 2, 3, 0, block);
        descriptors.unlockHeader(BUFFER, state | TAG_VALID | PERMANENT);
    }

    @Test
    void everyTagHasItsOwnGeneration() {
        for (int i = 0; i < 10; i++) {
            assertEquals(i, generation());
            retag(5); // the same tag again is a new one all the same
        }
    }

    @Test
    void theStatesLastFlagDoesNotReachIntoTheGeneration() {
        retag(5);
        assertEquals(1, generation());
        assertEquals(TAG_VALID | PERMANENT, descriptors.state(BUFFER));
        int state = descriptors.lockHeader(BUFFER);
        descriptors.unlockHeader(BUFFER, state & ~PERMANENT);
        assertEquals(1, generation());
        assertEquals(TAG_VALID, descriptors.state(BUFFER));
    }

    @Test
    void nothingButAnotherTagChangesTheGeneration() {
        retag(5);
        int state = descriptors.lockHeader(BUFFER);
        descriptors.unlockHeader(BUFFER, state | VALID);
        descriptors.pin(BUFFER);
        descriptors.markDirty(BUFFER);
        descriptors.unpin(BUFFER);
        state = descriptors.lockHeader(BUFFER);
        descriptors.cleanAndUnlockHeader(BUFFER, state);
        state = descriptors.lockHeader(BUFFER);
        descriptors.pinAndUnlockHeader(BUFFER, state);
        for (int i = 0; i < 10; i++) {
            assertTrue(descriptors.pinUnchanged(BUFFER, descriptors.word(BUFFER), MAX_USAGE_COUNT));
        }
        assertEquals(1, generation());
        assertEquals(11, refcount(descriptors.state(BUFFER)));
        assertEquals(MAX_USAGE_COUNT, usageCount(descriptors.state(BUFFER)));
    }

    @Test
    void theGenerationWrapsAndLeavesTheStateAlone() {
        memory.states.putLong(BUFFER << 3, GENERATION_MASK | TAG_VALID);
        assertEquals(0xFFFFFFFFL, generation());
        retag(5);
        assertEquals(0, generation());
        assertEquals(TAG_VALID | PERMANENT, descriptors.state(BUFFER));
    }

    @Test
    void aPinIsRefusedWhenAnythingOfTheWordHasChanged() {
        retag(5);
        long before = descriptors.word(BUFFER);
        retag(5);
        assertFalse(
                descriptors.pinUnchanged(BUFFER, before, MAX_USAGE_COUNT), "another generation");
        before = descriptors.word(BUFFER);
        descriptors.pin(BUFFER);
        assertFalse(descriptors.pinUnchanged(BUFFER, before, MAX_USAGE_COUNT), "another pin count");
        before = descriptors.word(BUFFER);
        int state = descriptors.lockHeader(BUFFER);
        assertFalse(descriptors.pinUnchanged(BUFFER, before, MAX_USAGE_COUNT), "locked");
        descriptors.unlockHeader(BUFFER, state);
        assertTrue(descriptors.pinUnchanged(BUFFER, before, MAX_USAGE_COUNT));
    }
}
