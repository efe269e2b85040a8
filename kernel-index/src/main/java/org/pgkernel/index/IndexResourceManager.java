package org.pgkernel.index;

import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.recovery.AbstractResourceManager;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.wal.WalRecord;

/**
 * What the resource managers of this module share: an error that names the place when a record or a
 * page turns out to be damaged. The buffers stay held then: recovery puts their pages back to what
 * the files hold before it lets them go.
 */
abstract class IndexResourceManager extends AbstractResourceManager {
    IndexResourceManager(int id, String... types) {
        super(id, types);
    }

    @Override
    public final void redo(WalRecord record, RedoContext context) {
        try {
            apply(record, context);
        } catch (DamagedDataException | IndexOutOfBoundsException e) {
            if (e instanceof DamagedDataException damaged && e.getMessage().contains("block=")) {
                // The pool found a damaged page and has named it.
                throw damaged;
            }
            throw new DamagedDataException(
                    "redo of "
                            + name()
                            + "/"
                            + identify(record.info())
                            + " failed: "
                            + e.getMessage()
                            + ". "
                            + context.place(record, 0),
                    e);
        }
    }

    abstract void apply(WalRecord record, RedoContext context);
}
