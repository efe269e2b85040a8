package org.pgkernel.bufmgr;

import org.junit.jupiter.api.Timeout;

/** Cleanup locks are had as if nobody retained pins. */
@Timeout(30)
class RetainingLockTest extends LockTest {
    @Override
    PoolFixture fixture() {
        return super.fixture().retaining();
    }
}
