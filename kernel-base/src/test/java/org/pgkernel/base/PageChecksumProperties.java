package org.pgkernel.base;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.agrona.BufferUtil;
import org.agrona.concurrent.UnsafeBuffer;

final class PageChecksumProperties {
    private static final String START_WORDS =
            "5B1F36E9B852596002AB50AA1DE66D2A79FF467A9BB9F8A3217E7CD283E13D2C"
                    + "F8D4474FE39EB97042C6AE16993216FA7B093B5D98DAFF3CF718902A0B1C9CDB"
                    + "E58F764B187636BC5D7B3BB1E73DE7DE92BEC979CCA6C0B2304A097985AA43D4"
                    + "783125BB6CA8EAA2E407EAC64B5CFC3E9FBF8C7615CA20BEF2CA9FD3959BD756";

    private final UnsafeBuffer nativePage =
            new UnsafeBuffer(BufferUtil.allocateDirectAligned(Page.SIZE, 4096));
    private final UnsafeBuffer heapPage = new UnsafeBuffer(new byte[Page.SIZE]);

    /** The definition, one lane after another in 64-bit arithmetic. */
    private static int reference(byte[] bytes, int block) {
        ByteBuffer page = ByteBuffer.wrap(bytes.clone()).order(ByteOrder.LITTLE_ENDIAN);
        page.putShort(8, (short) 0);
        long result = 0;
        for (int lane = 0; lane < 32; lane++) {
            long sum = Long.parseLong(START_WORDS.substring(lane * 8, lane * 8 + 8), 16);
            for (int row = 0; row < 66; row++) {
                long word = row < 64 ? page.getInt((row * 32 + lane) * 4) & 0xFFFFFFFFL : 0;
                long mixed = sum ^ word;
                sum = (mixed * 16777619L ^ mixed >>> 17) & 0xFFFFFFFFL;
            }
            result ^= sum;
        }
        return (int) ((result ^ block & 0xFFFFFFFFL) % 65535) + 1;
    }

    private byte[] fill(long seed) {
        byte[] bytes = new byte[Page.SIZE];
        new Random(seed).nextBytes(bytes);
        nativePage.putBytes(0, bytes);
        heapPage.putBytes(0, bytes);
        return bytes;
    }

    @Property(tries = 300)
    void checksumEqualsTheReferenceOnAnyPageAndBlock(@ForAll long seed, @ForAll int block) {
        byte[] bytes = fill(seed);
        int expected = reference(bytes, block);
        assertEquals(expected, PageChecksum.compute(nativePage, block));
        assertEquals(expected, PageChecksum.compute(nativePage.addressOffset(), block));
        assertEquals(expected, PageChecksum.compute(heapPage, block));
    }

    // BASE-5
    @Property(tries = 100)
    void checksumFieldDoesNotCountAndIsNotTouched(
            @ForAll long seed, @ForAll @IntRange(max = 65535) int stored) {
        fill(seed);
        int before = PageChecksum.compute(nativePage, 7);
        Page.setChecksum(nativePage, stored);
        assertEquals(before, PageChecksum.compute(nativePage, 7));
        assertEquals(stored, Page.checksum(nativePage));
    }

    @Property(tries = 300)
    void anyChangedByteElsewhereOrOtherBlockIsNoticed(
            @ForAll long seed,
            @ForAll @IntRange(max = Page.SIZE - 1) int at,
            @ForAll @IntRange(min = 1, max = 255) int flip) {
        if (at == 8 || at == 9) {
            return;
        }
        fill(seed);
        nativePage.putByte(at, (byte) (nativePage.getByte(at) ^ flip));
        // A 16-bit sum misses one change in 65,535; seen through many blocks, equal sums mean equal
        // words before the reduction.
        boolean noticed = false;
        for (int bit = 0; bit < 32; bit++) {
            noticed |=
                    PageChecksum.compute(nativePage, 1 << bit)
                            != PageChecksum.compute(heapPage, 1 << bit);
        }
        assertTrue(noticed);
        assertNotEquals(PageChecksum.compute(heapPage, 1), PageChecksum.compute(heapPage, 2));
    }

    // BASE-2
    @Example
    void checksumAllocatesNothing() {
        fill(1);
        long bytes = Allocation.ofWarm(() -> sums(10_000), 2_000);
        assertTrue(bytes < 2_000, bytes + " bytes allocated by 10,000 checksums");
    }

    private int sink;

    private void sums(int count) {
        int sink = 0;
        for (int i = 0; i < count; i++) {
            sink += PageChecksum.compute(nativePage, i);
        }
        this.sink = sink;
    }
}
