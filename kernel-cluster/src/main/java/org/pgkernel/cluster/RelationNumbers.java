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
            SmgrRelation relation = smgr.open(spc, db, number);
            // What was remembered may be another relation's of this number, long gone.
            smgr.close(relation);
            if (!smgr.open(spc, db, number).exists(ForkNumber.MAIN)) {
                return number;
            }
        }
    }
}
