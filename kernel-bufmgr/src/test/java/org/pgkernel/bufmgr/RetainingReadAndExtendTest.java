package org.pgkernel.bufmgr;

import org.junit.jupiter.api.Timeout;

/** The same when every pin that is given up is retained. */
@Timeout(30)
class RetainingReadAndExtendTest extends ReadAndExtendTest {
    @Override
    PoolFixture fixture() {
        return super.fixture().retaining();
    }
}
