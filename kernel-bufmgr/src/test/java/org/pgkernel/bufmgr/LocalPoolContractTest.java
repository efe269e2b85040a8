package org.pgkernel.bufmgr;

import org.junit.jupiter.api.Timeout;

/** A backend's own pool is one, too; what it does differently is in {@link LocalBufferPoolTest}. */
@Timeout(120)
class LocalPoolContractTest extends PagePoolContract {
    @Override
    PagePool open(PoolFixture fixture, int nbuffers) {
        return new PagePool.Local(fixture, nbuffers);
    }
}
