package org.pgkernel.bufmgr;

class OptimisticLookupTest extends LookupContract {
    @Override
    LookupStyle style() {
        return LookupStyle.OPTIMISTIC;
    }
}
