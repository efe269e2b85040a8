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
     * number; its sync request stays, as does the file. A temporary relation's files go at once: no
     * WAL speaks of them, so their number threatens nobody, and no sync was ever asked for.
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
            requests.registerUnlink(relation.spcOid(), relation.dbOid(), relation.relNumber());
        } else {
            found = !knownMissing && requests.unlink(name.path()) != SyncRequests.ABSENT;
        }
        if (found) {
            // Up to the first that is not there, so that inactive segments go, too.
            int number = 1;
            while (requests.unlink(name.segmentPath(number)) == SyncRequests.REMOVED) {
                number++;
            }
        }
    }

    /** Gives the kept segment's space back. @return false when it does not exist */
    private static boolean emptyFirst(SmgrRelation relation, ForkName name) {
        try {
            DiskFile file =
                    relation.manager().openFiles().openFile(name.path(), OpenFiles.IF_EXISTS);
            if (file == null) {
                return false;
            }
            try (file) {
                file.truncate(0);
            }
        } catch (DiskException e) {
            SyncRequests.warn(e);
        }
        return true;
    }
}
