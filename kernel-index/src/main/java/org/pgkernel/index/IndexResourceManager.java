package org.pgkernel.index;

import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.ResourceManager;
import org.pgkernel.wal.WalRecord;

/**
 * What the resource managers of this module share: names by record type, and an error that names
 * the place when a record or a page turns out to be damaged. The buffers stay held then: recovery
 * puts their pages back to what the files hold before it lets them go.
 */
abstract class IndexResourceManager implements ResourceManager {
    private final int id;
    private final String name;
    private final String[] types;

    /**
     * @param types names by {@code info >> 4}, null for types that do not exist
     */
    IndexResourceManager(int id, String name, String[] types) {
        this.id = id;
        this.name = name;
        this.types = types;
    }

    @Override
    public final int id() {
        return id;
    }

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final String identify(int info) {
        int type = info >>> 4 & 0x0F;
        return type < types.length ? types[type] : null;
    }

    @Override
    public boolean covers(int info) {
        return identify(info) != null;
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
                            + name
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
