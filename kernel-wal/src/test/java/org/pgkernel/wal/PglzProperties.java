package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

class PglzProperties {
    @Property(tries = 300)
    void whatIsEncodedIsDecoded(
            @ForAll long seed, @ForAll @IntRange(min = 0, max = 8192) int length) {
        byte[] raw = repetitive(new Random(seed), length);
        byte[] encoded = encode(raw);
        byte[] decoded = new byte[length];
        assertTrue(Pglz.decompress(encoded, encoded.length, decoded, length));
        assertArrayEquals(raw, decoded);
    }

    @Property(tries = 500)
    void whatTheCompressorMakesIsDecodedAndSavesAQuarter(
            @ForAll long seed, @ForAll @IntRange(min = 0, max = 20_000) int length) {
        byte[] raw = repetitive(new Random(seed), length);
        byte[] encoded = new byte[PglzCompressor.maxOutput(length)];
        int size = new PglzCompressor().compress(raw, 0, length, encoded);
        if (size < 0) {
            assertTrue(length < 1000, "not worth it: " + length);
            return;
        }
        assertTrue(size < length * 75 / 100, size + " of " + length);
        byte[] decoded = new byte[length];
        assertTrue(Pglz.decompress(encoded, size, decoded, length));
        assertArrayEquals(raw, decoded);
    }

    @Example
    void noiseAndShortDataAreGivenUp() {
        byte[] noise = new byte[50_000];
        new Random(1).nextBytes(noise);
        PglzCompressor compressor = new PglzCompressor();
        assertEquals(-1, compressor.compress(noise, 0, 50_000, new byte[50_004]));
        assertEquals(-1, compressor.compress(new byte[31], 0, 31, new byte[35]));
        assertEquals(5, compressor.compress(new byte[32], 0, 32, new byte[36]));
    }

    @Property(tries = 300)
    void truncatedInputIsNeverWhole(
            @ForAll long seed, @ForAll @IntRange(min = 1, max = 4000) int length) {
        Random random = new Random(seed);
        byte[] encoded = encode(repetitive(random, length));
        int cut = random.nextInt(encoded.length);
        byte[] exact = Arrays.copyOf(encoded, cut);
        assertFalse(Pglz.decompress(exact, cut, new byte[length], length));
    }

    @Property(tries = 2000)
    void anyInputIsDecodedOrRefused(
            @ForAll byte[] garbage,
            @ForAll long seed,
            @ForAll @IntRange(min = 0, max = 5000) int length) {
        byte[] to = new byte[length + 1];
        to[length] = 99;
        Pglz.decompress(garbage, garbage.length, to, length);
        Random random = new Random(seed);
        byte[] damaged = encode(repetitive(random, length));
        if (damaged.length > 0) {
            damaged[random.nextInt(damaged.length)] ^= (byte) (1 << random.nextInt(8));
            Pglz.decompress(damaged, damaged.length, to, length);
        }
        assertEquals(99, to[length]);
    }

    /**
     * One literal a, then a reference back by 1 of length 18 + 2; written down by hand from the
     * format.
     */
    @Example
    void vectorByHand() {
        byte[] encoded = HexFormat.of().parseHex("02" + "61" + "0F01" + "02");
        byte[] decoded = new byte[21];
        assertTrue(Pglz.decompress(encoded, encoded.length, decoded, 21));
        assertEquals("a".repeat(21), new String(decoded));
        // Distances use the upper half of the first byte: 0x10 | length nibble, 0x01 is 257.
        byte[] zeroDistance = HexFormat.of().parseHex("02" + "61" + "0000");
        assertFalse(Pglz.decompress(zeroDistance, zeroDistance.length, new byte[4], 4));
        byte[] beforeTheBeginning = HexFormat.of().parseHex("02" + "61" + "0002");
        assertFalse(Pglz.decompress(beforeTheBeginning, beforeTheBeginning.length, new byte[4], 4));
        byte[] tooMuch = HexFormat.of().parseHex("00" + "6162");
        assertFalse(Pglz.decompress(tooMuch, tooMuch.length, new byte[1], 1));
        assertFalse(Pglz.decompress(tooMuch, tooMuch.length, new byte[3], 3));
    }

    private static byte[] repetitive(Random random, int length) {
        byte[] bytes = new byte[length];
        for (int at = 0; at < length; ) {
            int run = Math.min(1 + random.nextInt(300), length - at);
            if (at > 0 && random.nextBoolean()) {
                int from = random.nextInt(at);
                for (int i = 0; i < run; i++) {
                    bytes[at + i] = bytes[from + i];
                }
            } else {
                for (int i = 0; i < run; i++) {
                    bytes[at + i] = (byte) random.nextInt(4);
                }
            }
            at += run;
        }
        return bytes;
    }

    /**
     * The simplest encoder: at each place the longest earlier match, found by looking everywhere.
     */
    static byte[] encode(byte[] raw) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream items = new ByteArrayOutputStream();
        int control = 0;
        int count = 0;
        for (int at = 0; at < raw.length; ) {
            int best = 0;
            int distance = 0;
            for (int back = 1; back <= Math.min(at, 4095) && back < 600; back++) {
                int length = 0;
                while (length < 273
                        && at + length < raw.length
                        && raw[at + length] == raw[at + length - back]) {
                    length++;
                }
                if (length > best) {
                    best = length;
                    distance = back;
                }
            }
            if (best >= 3) {
                control |= 1 << count;
                items.write(distance >> 4 & 0xF0 | Math.min(best - 3, 15));
                items.write(distance);
                if (best >= 18) {
                    items.write(best - 18);
                }
                at += best;
            } else {
                items.write(raw[at++]);
            }
            if (++count == 8 || at == raw.length) {
                out.write(control);
                out.writeBytes(items.toByteArray());
                items.reset();
                control = 0;
                count = 0;
            }
        }
        return out.toByteArray();
    }
}
