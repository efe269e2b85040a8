package org.pgkernel.index;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.recovery.RedoBuffer;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.wal.WalRecord;

/**
 * A sequence: one page with one heap tuple, and {@code 0x1717} in 8 bytes of special space. Every
 * record carries the whole tuple after the 12-byte relation locator; the page is made anew beside
 * the pool and copied in, so that bytes which stay the same never change, not even for a moment.
 * (PostgreSQL: seq_redo, sequence.c.)
 */
final class SequenceResourceManager extends IndexResourceManager {
    static final int MAGIC = 0x1717;
    static final int LOCATOR_SIZE = 12;

    private static final int SPECIAL_SIZE = 4;

    private final UnsafeBuffer local = new UnsafeBuffer(new byte[Page.SIZE]);

    SequenceResourceManager() {
        super(RmgrIds.SEQUENCE, "LOG");
    }

    @Override
    void apply(WalRecord record, RedoContext context) {
        RecordCheck.mainData(record, LOCATOR_SIZE);
        RecordCheck.block(record, 0);
        Page.init(local, SPECIAL_SIZE);
        local.putInt(Page.special(local), MAGIC);
        int length = record.dataLength() - LOCATOR_SIZE;
        if (PageItems.addItem(local, record.data(), LOCATOR_SIZE, length, 1, false, false)
                == PageItems.INVALID_OFFSET_NUMBER) {
            throw new DamagedDataException("failed to add item to page");
        }
        Page.setLsn(local, record.endLsn());
        RedoBuffer buffer = context.buffer(0);
        context.init(record, 0, buffer);
        buffer.page().putBytes(0, local, 0, Page.SIZE);
        buffer.markDirty();
        buffer.release();
    }
}
