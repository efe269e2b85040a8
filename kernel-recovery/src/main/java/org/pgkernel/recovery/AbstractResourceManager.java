package org.pgkernel.recovery;

import org.pgkernel.base.Lsn;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.wal.WalRecord;

/**
 * What resource managers share: number and name, the names of the record types, and words for a
 * record that contradicts its format. Covers every type that has a name, unless a subclass knows
 * better.
 */
public abstract class AbstractResourceManager implements ResourceManager {
    private final int id;
    private final String name;
    private final String[] types;

    /**
     * @param id see {@link RmgrIds}
     * @param types as pg_waldump prints them, by {@code info >> 4}; null for a type that does not
     *     exist. (PostgreSQL: rm_identify.)
     */
    protected AbstractResourceManager(int id, String... types) {
        this.id = id;
        this.name = RmgrIds.name(id);
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
    public String identify(int info) {
        int type = info >>> 4 & 0x0F;
        return type < types.length ? types[type] : null;
    }

    @Override
    public boolean covers(int info) {
        return identify(info) != null;
    }

    /** An error that names the record's type and place. */
    protected final DamagedDataException damaged(WalRecord record, String why) {
        String type = identify(record.info());
        return new DamagedDataException(
                "a "
                        + name
                        + "/"
                        + (type == null ? "UNKNOWN" : type)
                        + " record is damaged: "
                        + why
                        + ". lsn="
                        + Lsn.format(record.lsn()));
    }

    /** For a type that {@link #redo} does not know. */
    protected final DamagedDataException unknown(WalRecord record) {
        return damaged(record, "its type is not known, info=" + record.info());
    }

    /** Demands that the main data is at least {@code needed} bytes long. */
    protected final void requireLength(WalRecord record, int needed) {
        if (record.dataLength() < needed) {
            throw damaged(record, "it has " + record.dataLength() + " bytes instead of " + needed);
        }
    }
}
