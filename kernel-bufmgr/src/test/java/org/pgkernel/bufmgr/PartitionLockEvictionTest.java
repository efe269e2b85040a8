package org.pgkernel.bufmgr;

/** The same with lookups under partition locks. */
class PartitionLockEvictionTest extends EvictionTest {
    @Override
    LookupStyle lookupStyle() {
        return LookupStyle.PARTITION_LOCK;
    }
}
