package org.pgkernel.cluster;

import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.xact.RelationDropper;

/**
 * Removes relations whose transaction has ended: their buffers unwritten, then their files.
 * (PostgreSQL: DropRelationFiles, smgrdounlinkall.)
 */
final class FileDropper implements RelationDropper {
    private final BufferPool pool;
    private final StorageManager smgr;
    private final UnloggedNumbers unlogged;

    FileDropper(BufferPool pool, UnloggedNumbers unlogged) {
        this.pool = pool;
        this.unlogged = unlogged;
        smgr = pool.smgr();
    }

    @Override
    public void dropRelations(int[] locators, int count) {
        SmgrRelation[] relations = new SmgrRelation[count];
        for (int i = 0; i < count; i++) {
            relations[i] = smgr.open(locators[3 * i], locators[3 * i + 1], locators[3 * i + 2]);
        }
        pool.dropRelations(relations, count);
        smgr.unlinkAll(relations, count, false);
        for (int i = 0; i < count; i++) {
            unlogged.remove(locators[3 * i + 2]);
        }
    }
}
