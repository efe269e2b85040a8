package org.pgkernel.index;

import java.util.Arrays;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.recovery.RedoAction;
import org.pgkernel.recovery.RedoBuffer;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.wal.WalRecord;

/**
 * Changes that extensions log as differences of whole pages: runs of {@code offset 2, length 2,
 * bytes}, up to four pages a record. What lies between the line pointers and the items is not
 * logged and becomes zeros. (PostgreSQL: generic_redo, generic_xlog.c.)
 */
final class GenericResourceManager extends IndexResourceManager {
    static final int MAX_PAGES = 4;

    GenericResourceManager() {
        super(RmgrIds.GENERIC, names());
    }

    private static String[] names() {
        String[] names = new String[16];
        Arrays.fill(names, "Generic");
        return names;
    }

    @Override
    void apply(WalRecord record, RedoContext context) {
        if (record.maxBlockId() >= MAX_PAGES) {
            throw new DamagedDataException("the record has too many block references");
        }
        for (int id = 0; id <= record.maxBlockId(); id++) {
            for (int other = 0; other < id; other++) {
                RecordCheck.distinct(record, other, id);
            }
        }
        for (int id = 0; id <= record.maxBlockId(); id++) {
            if (record.hasBlock(id)) {
                RedoBuffer buffer = context.buffer(id);
                if (context.read(record, id, buffer) == RedoAction.NEEDS_REDO) {
                    UnsafeBuffer page = buffer.page();
                    applyDelta(page, record, id);
                    PageItems.checkPointers(page, false);
                    int lower = Page.lower(page);
                    page.setMemory(lower, Page.upper(page) - lower, (byte) 0);
                    Page.setLsn(page, record.endLsn());
                    buffer.markDirty();
                }
            }
        }
        for (int id = 0; id <= record.maxBlockId(); id++) {
            context.buffer(id).release();
        }
    }

    /** The whole delta is checked before the first byte changes. */
    static void applyDelta(UnsafeBuffer page, WalRecord record, int id) {
        int length = record.hasBlockData(id) ? record.blockDataLength(id) : 0;
        if (length > 0) {
            DirectBuffer delta = record.blockData(id);
            checkDelta(delta, length);
            for (int at = 0; at < length; ) {
                int offset = delta.getShort(at) & 0xFFFF;
                int run = delta.getShort(at + 2) & 0xFFFF;
                page.putBytes(offset, delta, at + 4, run);
                at += 4 + run;
            }
        }
    }

    static void checkDelta(DirectBuffer delta, int length) {
        for (int at = 0; at < length; ) {
            if (length - at < 4) {
                throw new DamagedDataException("a page difference ends in a header");
            }
            int offset = delta.getShort(at) & 0xFFFF;
            int run = delta.getShort(at + 2) & 0xFFFF;
            if (run > length - at - 4 || offset + run > Page.SIZE) {
                throw new DamagedDataException("a page difference runs past its end");
            }
            at += 4 + run;
        }
    }
}
