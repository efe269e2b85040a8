package org.pgkernel.bufmgr;

import org.junit.jupiter.api.Timeout;

/** Victims are found among buffers whose pins are retained, too. */
@Timeout(60)
class RetainingEvictionTest extends EvictionTest {
    @Override
    PoolFixture fixture() {
        return super.fixture().retaining();
    }
}
