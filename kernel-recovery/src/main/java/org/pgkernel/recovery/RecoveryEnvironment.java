package org.pgkernel.recovery;

import org.pgkernel.base.disk.Disk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.smgr.StorageManager;

/** What a recovery module may build on. */
public record RecoveryEnvironment(
        Disk disk, String dataDirectory, StorageManager smgr, BufferPool pool) {}
