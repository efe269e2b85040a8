package org.pgkernel.base;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.agrona.BufferUtil;
import org.agrona.concurrent.UnsafeBuffer;

final class Crc32cProperties {
    private static final int CAPACITY = 40_000;

    private final Crc32c crc = new Crc32c();
    private final UnsafeBuffer offHeap =
            new UnsafeBuffer(BufferUtil.allocateDirectAligned(CAPACITY, 8));
    private final UnsafeBuffer onHeap = new UnsafeBuffer(new byte[CAPACITY + 3], 3, CAPACITY);

    private static int bitwise(UnsafeBuffer bytes, int offset, int length) {
        int sum = -1;
        for (int i = 0; i < length; i++) {
            sum ^= bytes.getByte(offset + i) & 0xFF;
            for (int bit = 0; bit < 8; bit++) {
                sum = sum >>> 1 ^ ((sum & 1) != 0 ? 0x82F63B78 : 0);
            }
        }
        return ~sum;
    }

    @Property(tries = 200)
    void sumEqualsTheBitwiseDefinitionHoweverItIsCut(
            @ForAll long seed,
            @ForAll @IntRange(max = 20_000) int offset,
            @ForAll @IntRange(max = 20_000) int length,
            @ForAll @IntRange(max = 20_000) int cutAt) {
        byte[] bytes = new byte[CAPACITY];
        new Random(seed).nextBytes(bytes);
        offHeap.putBytes(0, bytes);
        onHeap.putBytes(0, bytes);
        int expected = bitwise(offHeap, offset, length);
        int cut = Math.min(cutAt, length);

        crc.reset();
        crc.update(offHeap.addressOffset() + offset, cut);
        crc.update(offHeap, offset + cut, length - cut);
        assertEquals(expected, crc.value());

        crc.reset();
        crc.update(onHeap, offset, cut);
        crc.update(bytes, offset + cut, length - cut);
        assertEquals(expected, crc.value());
        assertEquals(expected, Crc32c.of(onHeap, offset, length));
    }

    @Example
    void knownSumOfTheCheckString() {
        byte[] check = "123456789".getBytes(StandardCharsets.US_ASCII);
        assertEquals(0xE3069283, Crc32c.of(new UnsafeBuffer(check), 0, 9));
        assertEquals(0, Crc32c.of(new UnsafeBuffer(check), 0, 0));
    }

    // BASE-2
    @Example
    void sumAllocatesNothing() {
        long bytes = Allocation.ofWarm(() -> sums(10_000), 2_000);
        assertTrue(bytes < 2_000, bytes + " bytes allocated by 10,000 sums");
    }

    private int sink;

    private void sums(int count) {
        int sink = 0;
        for (int i = 0; i < count; i++) {
            crc.reset();
            crc.update(offHeap, i & 4095, 50);
            crc.update(offHeap.addressOffset(), 8192);
            sink += crc.value();
        }
        this.sink = sink;
    }
}
