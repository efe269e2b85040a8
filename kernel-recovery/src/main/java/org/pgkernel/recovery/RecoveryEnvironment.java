package org.pgkernel.recovery;

import org.pgkernel.base.disk.Disk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.smgr.StorageManager;

/**
 * What a recovery module may build on.
 *
 * @param fsmThreshold see {@link RecoveryOptions}
 */
public record RecoveryEnvironment(
        Disk disk, String dataDirectory, StorageManager smgr, BufferPool pool, int fsmThreshold) {
    /** Every relation has a free space map. */
    public RecoveryEnvironment(
            Disk disk, String dataDirectory, StorageManager smgr, BufferPool pool) {
        this(disk, dataDirectory, smgr, pool, 0);
    }
}
