package org.pgkernel.bufmgr;

/**
 * How fast a checkpoint has to write. Asked by one thread. (PostgreSQL: IsCheckpointOnSchedule.)
 */
public interface CheckpointSchedule {
    /**
     * For a checkpoint that somebody waits for: never early enough to rest. (CHECKPOINT_IMMEDIATE.)
     */
    CheckpointSchedule IMMEDIATE = progress -> false;

    /**
     * @param progress the part of the work that is done, from 0 to 1
     * @return true when that is more than has to be done by now, so that the writer may rest
     */
    boolean isOnSchedule(double progress);
}
