package org.pgkernel.bufmgr;

import org.junit.jupiter.api.Timeout;

/** The shared pool is a pool of pages. */
@Timeout(120)
class SharedPoolContractTest extends PagePoolContract {
    @Override
    PagePool open(PoolFixture fixture, int nbuffers) {
        return new PagePool.Shared(fixture, nbuffers);
    }
}
