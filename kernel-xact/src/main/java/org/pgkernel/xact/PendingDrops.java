package org.pgkernel.xact;

import java.util.Arrays;
import org.agrona.MutableDirectBuffer;

/**
 * Relations to be removed when a transaction commits, or, if it created them, when it aborts; one
 * session's, its thread only. Kept with the level of the subtransaction that asked. (PostgreSQL:
 * PendingRelDelete, storage.c.)
 */
final class PendingDrops {
    private static final int FIELDS = 5;
    private static final int LEVEL = 3;
    private static final int AT_COMMIT = 4;

    /** spc, db, rel, level, 1 for a drop at commit. */
    private int[] entries = new int[FIELDS * 8];

    private int size;
    private int[] locators = new int[0];

    void add(int spc, int db, int rel, int level, boolean atCommit) {
        int at = size++ * FIELDS;
        if (at == entries.length) {
            entries = Arrays.copyOf(entries, at * 2);
        }
        entries[at] = spc;
        entries[at + 1] = db;
        entries[at + 2] = rel;
        entries[at + LEVEL] = level;
        entries[at + AT_COMMIT] = atCommit ? 1 : 0;
    }

    /** How many there are to do when the level and those below end so. */
    int count(int level, boolean commit) {
        int count = 0;
        for (int i = 0; i < size; i++) {
            count += concerns(i, level, commit) ? 1 : 0;
        }
        return count;
    }

    private boolean concerns(int i, int level, boolean commit) {
        int at = i * FIELDS;
        return entries[at + LEVEL] >= level && entries[at + AT_COMMIT] == (commit ? 1 : 0);
    }

    /**
     * Writes their locators, the newest first, as PostgreSQL's list has them.
     *
     * @return the offset after them (PostgreSQL: smgrGetPendingDeletes)
     */
    int encode(int level, boolean commit, MutableDirectBuffer to, int offset) {
        int at = offset;
        for (int i = size - 1; i >= 0; i--) {
            if (concerns(i, level, commit)) {
                for (int field = 0; field < LEVEL; field++) {
                    to.putInt(at, entries[i * FIELDS + field]);
                    at += 4;
                }
            }
        }
        return at;
    }

    /** A subtransaction has committed: its parent's now. (PostgreSQL: AtSubCommit_smgr.) */
    void commitLevel(int level) {
        for (int i = 0; i < size; i++) {
            int at = i * FIELDS + LEVEL;
            entries[at] = Math.min(entries[at], level - 1);
        }
    }

    /**
     * Does what is to be done now that the level and those below have ended. The entries are gone
     * first: what fails is not tried again. (PostgreSQL: smgrDoPendingDeletes.)
     */
    void execute(int level, boolean commit, RelationDropper dropper) {
        if (size == 0) {
            return;
        }
        if (locators.length < size * LEVEL) {
            locators = new int[size * LEVEL];
        }
        int count = 0;
        int kept = 0;
        for (int i = size - 1; i >= 0; i--) {
            if (concerns(i, level, commit)) {
                System.arraycopy(entries, i * FIELDS, locators, count++ * LEVEL, LEVEL);
            }
        }
        for (int i = 0; i < size; i++) {
            if (entries[i * FIELDS + LEVEL] < level) {
                System.arraycopy(entries, i * FIELDS, entries, kept++ * FIELDS, FIELDS);
            }
        }
        size = kept;
        if (count > 0) {
            dropper.dropRelations(locators, count);
        }
    }
}
