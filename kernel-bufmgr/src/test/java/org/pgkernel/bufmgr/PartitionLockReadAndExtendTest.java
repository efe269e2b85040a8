package org.pgkernel.bufmgr;

/** The same with lookups under partition locks. */
class PartitionLockReadAndExtendTest extends ReadAndExtendTest {
    @Override
    LookupStyle lookupStyle() {
        return LookupStyle.PARTITION_LOCK;
    }
}
