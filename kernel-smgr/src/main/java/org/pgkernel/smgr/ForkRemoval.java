package org.pgkernel.smgr;

import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;

/**
 * Removes a fork's files. The order matters: sync requests are cancelled before any file goes, or a
 * checkpoint at the same time would take the loss for damage. (PostgreSQL: mdunlinkfork; it
 * truncates before it unlinks, for the sake of other processes' descriptors.)
 */
final class ForkRemoval {
    private ForkRemoval() {}

    /**
     * The caller holds the fork's extension lock and has closed its files. Outside redo the main
     * fork's first segment is emptied and kept until the next checkpoint, so that nobody takes its
     * number; its sync request stays, as does the file, and the cut is one more reason for it. A
     * temporary relation's files go at once: no WAL speaks of them, so their number threatens
     * nobody, and no sync was ever asked for.
     *
     * <p>The database's directory is queued, so that the checkpoint after the removal makes it
     * durable: whoever gets the number later, after a crash, must not find files of its first
     * owner. For the same reason redo looks for higher segments although the first one is gone: an
     * interrupted removal may have left them.
     *
     * @param knownMissing the fork is known to have no file, which saves a look
     */
    static void remove(
            SmgrRelation relation,
            ForkNumber fork,
            ForkName name,
            boolean isRedo,
            boolean knownMissing) {
        SyncRequests requests = relation.manager().syncRequests();
        boolean keepFirst = !isRedo && fork == ForkNumber.MAIN && !relation.isTemporary();
        if (!relation.isTemporary()) {
            requests.forget(
                    relation.spcOid(),
                    relation.dbOid(),
                    relation.relNumber(),
                    fork.ordinal(),
                    keepFirst ? 1 : 0);
        }
        boolean found;
        if (keepFirst) {
            found = emptyFirst(relation, name);
        } else {
            int first = knownMissing ? SyncRequests.ABSENT : requests.unlink(name.path());
            found = first != SyncRequests.ABSENT || isRedo && !knownMissing;
        }
        if (found) {
            // Up to the first that is not there, so that inactive segments go, too.
            int number = 1;
            while (requests.unlink(name.segmentPath(number)) == SyncRequests.REMOVED) {
                number++;
            }
            if (!relation.isTemporary()) {
                requests.registerDirectory(relation.spcOid(), relation.dbOid());
            }
        }
        if (keepFirst) {
            // Last: a checkpoint that begins from here on finds the directory queued, syncs it, and
            // only then removes the kept segment.
            requests.registerUnlink(relation.spcOid(), relation.dbOid(), relation.relNumber());
        }
    }

    /** Gives the kept segment's space back. @return false when it does not exist */
    private static boolean emptyFirst(SmgrRelation relation, ForkName name) {
        OpenFiles openFiles = relation.manager().openFiles();
        DiskFile file;
        try {
            file = openFiles.openFile(name.path(), OpenFiles.IF_EXISTS);
        } catch (DiskException e) {
            SyncRequests.warn(e);
            return true;
        }
        if (file == null) {
            return false;
        }
        try {
            if (file.size() > 0) {
                file.truncate(0);
                relation.manager()
                        .syncRequests()
                        .register(
                                relation.spcOid(),
                                relation.dbOid(),
                                relation.relNumber(),
                                ForkNumber.MAIN.ordinal(),
                                0);
            }
        } catch (DiskException e) {
            SyncRequests.warn(e);
        } finally {
            openFiles.closeFile(file);
        }
        return true;
    }

    /**
     * Empties a segment behind one that is not full: a leftover of a cut or a removal that a crash
     * has undone for this file only, which would become part of the fork once the segment before it
     * is full. The caller holds the fork's extension lock.
     *
     * @return true if there was something in it
     */
    static boolean emptyLeftover(SmgrRelation relation, String path) {
        OpenFiles openFiles = relation.manager().openFiles();
        DiskFile file = openFiles.openFile(path, OpenFiles.IF_EXISTS);
        if (file == null) {
            return false;
        }
        try {
            boolean isLeftover = file.size() > 0;
            if (isLeftover) {
                file.truncate(0);
            }
            return isLeftover;
        } finally {
            openFiles.closeFile(file);
        }
    }
}
