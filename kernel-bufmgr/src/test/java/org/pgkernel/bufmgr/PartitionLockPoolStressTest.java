package org.pgkernel.bufmgr;

/** The same with lookups under partition locks. */
class PartitionLockPoolStressTest extends PoolStressTest {
    @Override
    LookupStyle lookupStyle() {
        return LookupStyle.PARTITION_LOCK;
    }
}
