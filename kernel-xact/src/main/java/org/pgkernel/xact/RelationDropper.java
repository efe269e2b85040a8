package org.pgkernel.xact;

/** Removes relations whose transaction has ended. (PostgreSQL: smgrdounlinkall.) */
@FunctionalInterface
public interface RelationDropper {
    /**
     * @param locators tablespace, database and number of each, one after another; not kept
     */
    void dropRelations(int[] locators, int count);
}
