package org.pgkernel.bufmgr;

class PartitionLockLookupTest extends LookupContract {
    @Override
    LookupStyle style() {
        return LookupStyle.PARTITION_LOCK;
    }
}
