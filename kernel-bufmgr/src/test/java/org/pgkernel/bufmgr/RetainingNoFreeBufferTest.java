package org.pgkernel.bufmgr;

import org.junit.jupiter.api.Timeout;

/** Pins that nobody uses are no reason to be told that all buffers are pinned. */
@Timeout(60)
class RetainingNoFreeBufferTest extends NoFreeBufferTest {
    @Override
    PoolFixture fixture() {
        return super.fixture().retaining();
    }

    /** The first may find nothing but pins that it takes back. */
    @Override
    long rounds() {
        return 2;
    }
}
