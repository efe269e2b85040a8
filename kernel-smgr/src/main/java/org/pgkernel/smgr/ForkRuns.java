package org.pgkernel.smgr;

import org.agrona.UnsafeApi;
import org.pgkernel.base.BlockNumber;

/**
 * Reads and hints over neighbouring blocks of a fork, as many at a time as lie in one segment.
 * Takes a pin on a segment for one call of the disk, no lock, and makes no segments. A segment that
 * is missing ends the run: what that means is for {@link ForkFiles#read} of its first block to say,
 * so that errors, and the zeros that redo gets, have one place. (PostgreSQL: mdreadv of 17,
 * mdprefetch.)
 */
final class ForkRuns {
    private static final int PAGE = BlockNumber.PAGE_SIZE;

    private ForkRuns() {}

    /**
     * @return blocks that came whole, from the first on
     */
    static int read(ForkFiles files, int block, long[] addresses, int first, int count) {
        int done = 0;
        while (done < count) {
            int pages = files.inSameSegment(block + done, count - done);
            SegmentFile segment = files.pinIfThere(block + done);
            if (segment == null) {
                return done;
            }
            int bytes;
            try {
                long offset = files.offset(block + done);
                bytes = segment.file().readv(addresses, first + done, pages, PAGE, offset);
            } finally {
                segment.unpin();
            }
            done += bytes / PAGE;
            if (bytes < pages * PAGE) {
                return done;
            }
        }
        return done;
    }

    static void prefetch(ForkFiles files, int block, int count) {
        for (int done = 0; done < count; ) {
            int pages = files.inSameSegment(block + done, count - done);
            SegmentFile segment = files.pinIfThere(block + done);
            if (segment == null) {
                return;
            }
            try {
                segment.file().prefetch(files.offset(block + done), (long) pages * PAGE);
            } finally {
                segment.unpin();
            }
            done += pages;
        }
    }

    /** See {@link SmgrRelation#firstInTheWay}. Costs one read at the file's end. */
    static int firstInTheWay(ForkFiles files, int block, int count, long address) {
        for (int i = 0; i < count; i++) {
            SegmentFile segment = files.pinIfThere(block + i);
            if (segment == null) {
                return BlockNumber.INVALID;
            }
            int length;
            try {
                length = segment.file().read(address, PAGE, files.offset(block + i));
            } finally {
                segment.unpin();
            }
            if (length < PAGE) {
                return BlockNumber.INVALID;
            }
            if (!isZero(address)) {
                return block + i;
            }
        }
        return BlockNumber.INVALID;
    }

    private static boolean isZero(long address) {
        for (int at = 0; at < PAGE; at += Long.BYTES) {
            if (UnsafeApi.getLong(address + at) != 0) {
                return false;
            }
        }
        return true;
    }
}
