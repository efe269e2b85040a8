package org.pgkernel.bufmgr;

import org.junit.jupiter.api.Timeout;

/** The shared pool is a pool of pages, also when every pin that is given up is retained. */
@Timeout(120)
class RetainingPoolContractTest extends PagePoolContract {
    @Override
    PagePool open(PoolFixture fixture, int nbuffers) {
        return new PagePool.Shared(fixture.retaining(), nbuffers);
    }
}
