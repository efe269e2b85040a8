package org.pgkernel.smgr;

/** When a remembered fork size is proof of the fork's real size. */
public enum SizePolicy {
    /**
     * As PostgreSQL: a remembered size is accurate during recovery only, where one process changes
     * files; outside it is a hint and the file is asked again. (PostgreSQL: smgrnblocks_cached,
     * smgr.c.)
     */
    RECOVERY_ONLY,
    /**
     * One size per relation, shared by all backends of this process and changed only under the
     * extension lock: accurate everywhere.
     */
    SHARED
}
