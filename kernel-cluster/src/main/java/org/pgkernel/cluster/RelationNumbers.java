package org.pgkernel.cluster;

import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;

/**
 * File numbers for new relations. A number is free when no file has it: a dropped relation leaves
 * its first file, empty, until the checkpoint after the drop has completed, so that redo of the
 * drop cannot meet another relation's files (C11). (PostgreSQL: GetNewRelFileNode, catalog.c.)
 */
final class RelationNumbers {
    private final OidCounter oids;
    private final StorageManager smgr;

    RelationNumbers(OidCounter oids, StorageManager smgr) {
        this.oids = oids;
        this.smgr = smgr;
    }

    /** A number that no relation of the database has a file of. Nobody else gets it. */
    int next(int spc, int db) {
        while (true) {
            int number = oids.next();
            if (isFree(spc, db, number)) {
                return number;
            }
        }
    }

    /** What was remembered of such a relation may be another one's of this number, long gone. */
    boolean isFree(int spc, int db, int number) {
        smgr.close(smgr.open(spc, db, number));
        SmgrRelation relation = smgr.open(spc, db, number);
        boolean free = !relation.exists(ForkNumber.MAIN);
        if (!free) {
            smgr.close(relation);
        }
        return free;
    }
}
