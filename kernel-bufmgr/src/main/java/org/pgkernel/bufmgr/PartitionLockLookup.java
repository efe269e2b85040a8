package org.pgkernel.bufmgr;

/**
 * Looks up and pins under the shared lock of the block's partition. Whoever takes a page out of the
 * table or puts one into it holds that lock exclusively, so between finding and pinning the buffer
 * keeps its tag, and what is not found is not there. The header lock is waited for under the
 * partition lock, never the other way round. (PostgreSQL: BufferAlloc, its first part.)
 */
final class PartitionLockLookup extends PageLookup {
    private final BufferDescriptors descriptors;
    private final BufferTable table;

    PartitionLockLookup(BufferDescriptors descriptors, BufferTable table) {
        this.descriptors = descriptors;
        this.table = table;
    }

    @Override
    int pin(int hash, int spc, int db, int rel, int fork, int block, int most) {
        int partition = table.partition(hash);
        table.lockShared(partition);
        int buffer = table.lookup(hash, spc, db, rel, fork, block);
        int answer = buffer >= 0 ? answer(buffer, descriptors.pin(buffer, most)) : ABSENT;
        table.unlock(partition);
        return answer;
    }
}
