package org.pgkernel.wal;

import java.util.Arrays;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.KernelStoppedException;

/**
 * One thread's way to log a change of pages: tells which pages a record changes, and whether each
 * of them is logged as an image or by the change alone is decided when the record is inserted.
 *
 * <p>A page needs an image in the first record after each checkpoint's redo point: redo that begins
 * there may find it torn. So an image is taken of a page whose LSN is not behind the redo point; if
 * the redo point moves before the record has its place, {@link WalInserter#insert} asks again and
 * the decision is made anew. Data that a page's image makes superfluous is left out.
 *
 * <pre>
 *   change the pages, mark their buffers dirty
 *   begin(...); data(...); page(0, ...); pageData(0, ...); page(1, ...) ...
 *   end = insert()
 *   Page.setLsn(page, end) on each of them
 * </pre>
 *
 * The caller holds the exclusive content lock of every page from before its change to after its LSN
 * is set; a failure in between stops the kernel, which is the caller's to see to. The pages are
 * read in {@link #insert}: they hold the change by then. Main data and pages' data are copied at
 * once. Allocates nothing once it has grown. (PostgreSQL: XLogBeginInsert, XLogRegisterBuffer,
 * XLogRegisterBufData, XLogRegisterData, XLogInsert, xloginsert.c.)
 */
public final class RecordInsert {
    /** The page's image is taken whatever its LSN. (REGBUF_FORCE_IMAGE) */
    public static final int FORCE_IMAGE = 0x01;

    /** No image is taken whatever the page's LSN. (REGBUF_NO_IMAGE) */
    public static final int NO_IMAGE = 0x02;

    /** Redo makes the page anew from the record, so no image is taken. (REGBUF_WILL_INIT) */
    public static final int WILL_INIT = 0x04 | NO_IMAGE;

    /** What is between pd_lower and pd_upper is left out of an image. (REGBUF_STANDARD) */
    public static final int STANDARD = 0x08;

    /** The page's data is logged even with its image. (REGBUF_KEEP_DATA) */
    public static final int KEEP_DATA = 0x10;

    /** The heap's records name four pages at most; index code may name more. */
    private static final int FIRST_PAGES = 5;

    private final WalInserter wal;
    private final WalRecordBuilder builder;

    /** By block id: the page, where it is; wrapped anew for each record. */
    private UnsafeBuffer[] pages = new UnsafeBuffer[FIRST_PAGES];

    private int[] pageFlags = new int[FIRST_PAGES];

    /** Bit n: page n is registered. */
    private long registered;

    public RecordInsert(WalInserter wal) {
        this(wal, ImageCompression.OFF);
    }

    public RecordInsert(WalInserter wal, ImageCompression compression) {
        this.wal = wal;
        builder = new WalRecordBuilder(compression);
    }

    /** Forgets the record before. @param xid of the change's transaction, 0 for none */
    public RecordInsert begin(int rmid, int info, int xid) {
        builder.begin(rmid, info, xid);
        registered = 0;
        return this;
    }

    /** The record changes this page. @param page its bytes in the pool, until {@link #insert} */
    public RecordInsert page(
            int id,
            int spc,
            int db,
            int rel,
            ForkNumber fork,
            int block,
            DirectBuffer page,
            int flags) {
        builder.block(
                id,
                spc,
                db,
                rel,
                fork,
                block,
                (flags & WILL_INIT) == WILL_INIT ? WalRecordFormat.BKPBLOCK_WILL_INIT : 0);
        if (id >= pages.length) {
            grow(id);
        }
        if (pages[id] == null) {
            pages[id] = new UnsafeBuffer(page, 0, Page.SIZE);
        } else {
            pages[id].wrap(page, 0, Page.SIZE);
        }
        pageFlags[id] = flags;
        registered |= 1L << id;
        return this;
    }

    private void grow(int id) {
        pages = Arrays.copyOf(pages, id + 4);
        pageFlags = Arrays.copyOf(pageFlags, id + 4);
    }

    /** Appends to the data that redo needs for the page, 65535 bytes at most. */
    public RecordInsert pageData(int id, DirectBuffer from, int offset, int length) {
        builder.blockData(id, from, offset, length);
        return this;
    }

    /** Appends to the data that redo needs whatever becomes of the pages. */
    public RecordInsert data(DirectBuffer from, int offset, int length) {
        builder.data(from, offset, length);
        return this;
    }

    /** Takes the images that are due and inserts. @return the LSN that the pages are to carry */
    public long insert() {
        long end;
        do {
            builder.forgetWithoutImage();
            long imageLsn = wal.imageLsn();
            for (long left = registered; left != 0; left &= left - 1) {
                decide(Long.numberOfTrailingZeros(left), imageLsn);
            }
            end = wal.insert(builder);
        } while (end == WalInserter.NEEDS_IMAGES);
        return end;
    }

    /** An image once taken stays: the page has not changed since. */
    private void decide(int id, long imageLsn) {
        if (builder.hasImage(id)) {
            return;
        }
        int flags = pageFlags[id];
        boolean image = (flags & FORCE_IMAGE) != 0;
        if (!image && (flags & NO_IMAGE) == 0) {
            long lsn = Page.lsn(pages[id]);
            image = lsn <= imageLsn;
            if (!image) {
                builder.withoutImage(lsn);
            }
        }
        if (image) {
            builder.addImage(id, pages[id], (flags & STANDARD) != 0);
            if ((flags & KEEP_DATA) == 0) {
                builder.dropBlockData(id);
            }
        }
    }

    /**
     * For whatever fails between the first change of a page and its LSN, while the pages are still
     * locked: <code>catch (RuntimeException | Error e) { throw record.stop(e); }</code>. See {@link
     * WalInserter#stop}.
     */
    public KernelStoppedException stop(Throwable cause) {
        return wal.stop(cause);
    }

    /** True if the record was inserted with the page's image. */
    public boolean hasImage(int id) {
        return builder.hasImage(id);
    }

    /** Where the record that was inserted last begins. */
    public long startLsn() {
        return builder.startLsn();
    }
}
