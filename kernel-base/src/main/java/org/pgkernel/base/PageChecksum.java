package org.pgkernel.base;

import org.agrona.DirectBuffer;
import org.agrona.UnsafeApi;

/**
 * The checksum of a page: 32 FNV-1a sums run side by side over the page's 2048 words, folded, mixed
 * with the block number and brought into 1..65535. The checksum field itself counts as zero, but
 * nothing is written to the page, so that readers of shared memory may call this.
 *
 * <p>The caller keeps the page from changing meanwhile, or works on a copy: a hint bit set half-way
 * gives a sum that fits neither state. A page that was never formatted has no checksum (see {@link
 * PageVerify}). Thread-safe, allocates nothing after a thread's first call. (PostgreSQL:
 * pg_checksum_page, checksum_impl.h.)
 */
public final class PageChecksum {
    private static final int SUMS = 32;
    private static final int ROW = SUMS * Integer.BYTES;
    private static final int FNV_PRIME = 16777619;

    /** The word that holds pd_checksum (its lower half) and pd_flags. */
    private static final int CHECKSUM_WORD = Page.PD_CHECKSUM / Integer.BYTES;

    private static final int WITHOUT_CHECKSUM = 0xFFFF0000;

    private static final int[] START = {
        0x5B1F36E9, 0xB8525960, 0x02AB50AA, 0x1DE66D2A, 0x79FF467A, 0x9BB9F8A3, 0x217E7CD2,
                0x83E13D2C,
        0xF8D4474F, 0xE39EB970, 0x42C6AE16, 0x993216FA, 0x7B093B5D, 0x98DAFF3C, 0xF718902A,
                0x0B1C9CDB,
        0xE58F764B, 0x187636BC, 0x5D7B3BB1, 0xE73DE7DE, 0x92BEC979, 0xCCA6C0B2, 0x304A0979,
                0x85AA43D4,
        0x783125BB, 0x6CA8EAA2, 0xE407EAC6, 0x4B5CFC3E, 0x9FBF8C76, 0x15CA20BE, 0xF2CA9FD3,
                0x959BD756,
    };

    private static final ThreadLocal<int[]> LANES = ThreadLocal.withInitial(() -> new int[SUMS]);

    private PageChecksum() {}

    /**
     * The checksum (1..65535) of the page at a native address, as block {@code block} of its fork.
     */
    public static int compute(long address, int block) {
        int[] sums = LANES.get();
        System.arraycopy(START, 0, sums, 0, SUMS);
        addFourRows(sums, address);
        // BASE-5: the lane of the checksum word is summed again, with the checksum masked out.
        long word = address + Page.PD_CHECKSUM;
        int sum = round(START[CHECKSUM_WORD], UnsafeApi.getInt(word) & WITHOUT_CHECKSUM);
        sum = round(sum, UnsafeApi.getInt(word + ROW));
        sum = round(sum, UnsafeApi.getInt(word + 2 * ROW));
        sums[CHECKSUM_WORD] = round(sum, UnsafeApi.getInt(word + 3 * ROW));
        for (int at = 4 * ROW; at < Page.SIZE; at += 4 * ROW) {
            addFourRows(sums, address + at);
        }
        return finish(sums, block);
    }

    /** The checksum (1..65535) of the page that begins at index 0 of {@code page}. */
    public static int compute(DirectBuffer page, int block) {
        return compute(page, 0, block);
    }

    /** The checksum (1..65535) of the page that begins at {@code offset} of {@code buffer}. */
    public static int compute(DirectBuffer buffer, int offset, int block) {
        buffer.boundsCheck(offset, Page.SIZE);
        if (buffer.byteArray() == null) {
            return compute(buffer.addressOffset() + offset, block);
        }
        int[] sums = LANES.get();
        System.arraycopy(START, 0, sums, 0, SUMS);
        for (int at = 0; at < Page.SIZE; at += Integer.BYTES) {
            int word = buffer.getInt(offset + at);
            int lane = at / Integer.BYTES % SUMS;
            sums[lane] =
                    round(
                            sums[lane],
                            at == CHECKSUM_WORD * Integer.BYTES ? word & WITHOUT_CHECKSUM : word);
        }
        return finish(sums, block);
    }

    /**
     * Four words to each lane. Kept apart and free of branches: in this form C2 vectorises it (one
     * row at a time is a third slower, lane after lane seven times).
     */
    private static void addFourRows(int[] sums, long row) {
        for (int lane = 0; lane < SUMS; lane++) {
            long at = row + lane * 4L;
            int sum = sums[lane];
            sum = round(sum, UnsafeApi.getInt(null, at));
            sum = round(sum, UnsafeApi.getInt(null, at + ROW));
            sum = round(sum, UnsafeApi.getInt(null, at + 2 * ROW));
            sum = round(sum, UnsafeApi.getInt(null, at + 3 * ROW));
            sums[lane] = sum;
        }
    }

    private static int round(int sum, int word) {
        int mixed = sum ^ word;
        return mixed * FNV_PRIME ^ mixed >>> 17;
    }

    private static int finish(int[] sums, int block) {
        for (int lane = 0; lane < SUMS; lane++) {
            sums[lane] = round(round(sums[lane], 0), 0);
        }
        int folded = 0;
        for (int lane = 0; lane < SUMS; lane++) {
            folded ^= sums[lane];
        }
        return Integer.remainderUnsigned(folded ^ block, 65535) + 1;
    }
}
