package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class LockModeTest {
    /** Table 13.2, "Conflicting Lock Modes", of PostgreSQL's documentation. */
    private static final String[] DOCUMENTED = {
        "ACCESS SHARE           | . . . . . . . X",
        "ROW SHARE              | . . . . . . X X",
        "ROW EXCLUSIVE          | . . . . X X X X",
        "SHARE UPDATE EXCLUSIVE | . . . X X X X X",
        "SHARE                  | . . X X . X X X",
        "SHARE ROW EXCLUSIVE    | . . X X X X X X",
        "EXCLUSIVE              | . X X X X X X X",
        "ACCESS EXCLUSIVE       | X X X X X X X X",
    };

    /** Table 13.3, "Conflicting Row-Level Locks", in the order of multixact statuses. */
    private static final String[] ROW_LOCKS = {
        "FOR KEY SHARE     | . . . X", "FOR SHARE         | . . X X",
        "FOR NO KEY UPDATE | . X X X", "FOR UPDATE        | X X X X",
    };

    @Test
    void conflictsAreTheDocumentedOnes() {
        assertEquals(DOCUMENTED.length, LockMode.values().length);
        for (LockMode mode : LockMode.values()) {
            String[] parts = DOCUMENTED[mode.ordinal()].split("\\|");
            assertEquals(parts[0].trim().replace(' ', '_'), mode.name());
            String[] marks = parts[1].trim().split(" ");
            for (LockMode other : LockMode.values()) {
                assertEquals(
                        marks[other.ordinal()].equals("X"),
                        mode.conflictsWith(other),
                        mode + " with " + other);
                assertEquals(mode.conflictsWith(other), other.conflictsWith(mode));
            }
        }
    }

    @Test
    void rowLocksConflictAsDocumented() {
        int[] statuses = {
            MultiXactMembers.FOR_KEY_SHARE,
            MultiXactMembers.FOR_SHARE,
            MultiXactMembers.FOR_NO_KEY_UPDATE,
            MultiXactMembers.FOR_UPDATE
        };
        for (int i = 0; i < 4; i++) {
            String[] marks = ROW_LOCKS[i].split("\\|")[1].trim().split(" ");
            for (int j = 0; j < 4; j++) {
                assertEquals(
                        marks[j].equals("X"),
                        MultiXactMembers.lockMode(statuses[i])
                                .conflictsWith(MultiXactMembers.lockMode(statuses[j])),
                        ROW_LOCKS[i]);
            }
        }
        assertEquals(
                MultiXactMembers.lockMode(MultiXactMembers.FOR_NO_KEY_UPDATE),
                MultiXactMembers.lockMode(MultiXactMembers.NO_KEY_UPDATE));
        assertEquals(
                MultiXactMembers.lockMode(MultiXactMembers.FOR_UPDATE),
                MultiXactMembers.lockMode(MultiXactMembers.UPDATE));
    }
}
