package org.pgkernel.xact;

import org.pgkernel.recovery.AbstractResourceManager;
import org.pgkernel.wal.WalRecord;

/** A resource manager of a log: its records begin with a page number. */
abstract class SlruResourceManager extends AbstractResourceManager {
    SlruResourceManager(int id, String... types) {
        super(id, types);
    }

    /** The record's page number, checked; the record has at least {@code needed} bytes. */
    final int page(WalRecord record, int needed, Slru slru) {
        requireLength(record, needed);
        int page = record.data().getInt(0);
        if (page < 0 || page > slru.maxPage()) {
            throw damaged(record, "there is no page " + page);
        }
        return page;
    }
}
