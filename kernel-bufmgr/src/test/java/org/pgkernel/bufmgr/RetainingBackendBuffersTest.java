package org.pgkernel.bufmgr;

import org.junit.jupiter.api.Timeout;

/** Pins count, and scopes own them, also when each is retained at its release. */
@Timeout(30)
class RetainingBackendBuffersTest extends BackendBuffersTest {
    @Override
    PoolFixture fixture() {
        return super.fixture().retaining();
    }
}
