package org.pgkernel.recovery;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.wal.WalRecord;

/**
 * A resource manager under the heap's number whose records are easy to make: SET adds one byte to a
 * count on the page of each block reference, INIT formats the page of block 0, FAIL changes the
 * page and then finds the record damaged.
 */
final class TinyHeap implements ResourceManager {
    static final int SET = 0x00;
    static final int INIT = 0x10;
    static final int FAIL = 0x20;
    static final int UNCOVERED = 0x30;
    static final int OUT_OF_BOUNDS = 0x40;

    /** Where on the page the count is. */
    static final int COUNT = 4000;

    boolean failuresAreRepaired;

    @Override
    public int id() {
        return RmgrIds.HEAP;
    }

    @Override
    public String name() {
        return "Heap";
    }

    @Override
    public String identify(int info) {
        return switch (info & 0xF0) {
            case SET -> "SET";
            case INIT -> "INIT";
            case FAIL -> "FAIL";
            case UNCOVERED -> "UNCOVERED";
            case OUT_OF_BOUNDS -> "OUT_OF_BOUNDS";
            default -> null;
        };
    }

    @Override
    public boolean covers(int info) {
        return (info & 0xF0) != UNCOVERED;
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {
        if (record.type() == INIT) {
            RedoBuffer buffer = context.buffer(0);
            context.init(record, 0, buffer);
            Page.init(buffer.page(), 0);
            finish(buffer, record);
            return;
        }
        for (int id = 0; id <= record.maxBlockId(); id++) {
            RedoBuffer buffer = context.buffer(id);
            RedoAction action = context.read(record, id, ReadMode.NORMAL, false, buffer);
            if (action == RedoAction.NEEDS_REDO) {
                UnsafeBuffer page = buffer.page();
                page.putInt(COUNT, page.getInt(COUNT) + 1);
                if (record.type() == FAIL && !failuresAreRepaired) {
                    throw new DamagedDataException("a record that cannot be applied");
                }
                if (record.type() == OUT_OF_BOUNDS) {
                    page.getInt(Page.SIZE);
                }
                finish(buffer, record);
            } else {
                buffer.release();
            }
        }
    }

    private static void finish(RedoBuffer buffer, WalRecord record) {
        Page.setLsn(buffer.page(), record.endLsn());
        buffer.markDirty();
        buffer.release();
    }
}
