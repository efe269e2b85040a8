package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.airlift.compress.v3.Compressor;
import io.airlift.compress.v3.lz4.Lz4JavaCompressor;
import io.airlift.compress.v3.zstd.ZstdJavaCompressor;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;

class PageImageTest {
    private static final int[] METHODS = {
        WalRecordFormat.BKPIMAGE_COMPRESS_PGLZ,
        WalRecordFormat.BKPIMAGE_COMPRESS_LZ4,
        WalRecordFormat.BKPIMAGE_COMPRESS_ZSTD
    };

    private final Random random = new Random(11);

    @Test
    void compressedImagesAreRestoredWithTheirHole() {
        for (int method : METHODS) {
            for (int hole : new int[] {0, 1, 500, 8000}) {
                byte[] page = page(hole == 0 ? 0 : 100, hole);
                byte[] restored = new byte[Page.SIZE];
                Arrays.fill(restored, (byte) 9);
                decoded(method, compressed(method, page, 100, hole), hole == 0 ? 0 : 100, hole)
                        .restoreImage(3, new UnsafeBuffer(restored));
                assertArrayEquals(page, restored, "method " + method + " hole " + hole);
            }
        }
    }

    @Test
    void damagedImagesAreNamedNeverEscape() {
        for (int method : METHODS) {
            byte[] good = compressed(method, page(100, 500), 100, 500);
            for (int i = 0; i < 3000; i++) {
                byte[] damaged =
                        random.nextInt(3) == 0
                                ? Arrays.copyOf(good, random.nextInt(good.length))
                                : good.clone();
                for (int flips = random.nextInt(4); flips > 0 && damaged.length > 0; flips--) {
                    damaged[random.nextInt(damaged.length)] = (byte) random.nextInt(256);
                }
                WalRecord record = decoded(method, damaged, 100, 500);
                try {
                    record.restoreImage(3, new UnsafeBuffer(new byte[Page.SIZE]));
                } catch (DamagedDataException e) {
                    assertTrue(
                            e.getMessage().endsWith("rel=1663/5/16384 fork=MAIN block=77 lsn=0/64"),
                            e.getMessage());
                }
            }
            WalRecord truncated = decoded(method, Arrays.copyOf(good, good.length / 2), 100, 500);
            assertThrows(
                    DamagedDataException.class,
                    () -> truncated.restoreImage(3, new UnsafeBuffer(new byte[Page.SIZE])));
            // Decompresses well, to less or more than the page without its hole. (pglz may cut its
            // last match to fit.)
            for (int other :
                    method == WalRecordFormat.BKPIMAGE_COMPRESS_PGLZ
                            ? new int[] {499}
                            : new int[] {499, 501}) {
                WalRecord wrongHole = decoded(method, good, 100, other);
                assertThrows(
                        DamagedDataException.class,
                        () -> wrongHole.restoreImage(3, new UnsafeBuffer(new byte[Page.SIZE])));
            }
        }
    }

    /** WAL-3. */
    @Test
    void impossibleImageHeadersAreNoRecord() {
        byte[] image = new byte[1000];
        int pglz = WalRecordFormat.BKPIMAGE_COMPRESS_PGLZ;
        assertNotNull(decode(pglz, image, 8000, 193), "the hole leaves the page");
        assertNotNull(decode(pglz, image, 0, 500), "a hole at 0");
        assertNotNull(decode(0, image, 2000, 500), "what the image leaves out leaves the page");
        assertNotNull(
                decode(pglz, new byte[8192], 100, 500), "as long as a page though compressed");
        assertNull(decode(0, new byte[7692], 100, 500));
    }

    private byte[] page(int lower, int hole) {
        byte[] page = new byte[Page.SIZE];
        for (int i = 0; i < page.length; i++) {
            page[i] = (byte) (i / 50 % 7);
        }
        Arrays.fill(page, lower, lower + hole, (byte) 0);
        return page;
    }

    private static byte[] compressed(int method, byte[] page, int lower, int hole) {
        byte[] raw = new byte[Page.SIZE - hole];
        int head = hole == 0 ? 0 : lower;
        System.arraycopy(page, 0, raw, 0, head);
        System.arraycopy(page, head + hole, raw, head, raw.length - head);
        if (method == WalRecordFormat.BKPIMAGE_COMPRESS_PGLZ) {
            return PglzProperties.encode(raw);
        }
        Compressor compressor =
                method == WalRecordFormat.BKPIMAGE_COMPRESS_LZ4
                        ? new Lz4JavaCompressor()
                        : new ZstdJavaCompressor();
        byte[] out = new byte[compressor.maxCompressedLength(raw.length)];
        return Arrays.copyOf(out, compressor.compress(raw, 0, raw.length, out, 0, out.length));
    }

    private static WalRecord decoded(int method, byte[] image, int lower, int hole) {
        WalRecord record = new WalRecord();
        assertNull(decodeInto(record, method, image, lower, hole));
        return record;
    }

    private static String decode(int method, byte[] image, int lower, int hole) {
        return decodeInto(new WalRecord(), method, image, lower, hole);
    }

    /** A record with block 3 and its image, laid out by hand. */
    private static String decodeInto(
            WalRecord record, int method, byte[] image, int lower, int hole) {
        UnsafeBuffer bytes = new UnsafeBuffer(ByteBuffer.allocateDirect(10_000));
        int at = WalRecordFormat.HEADER_SIZE;
        bytes.putByte(at, (byte) 3);
        bytes.putByte(at + 1, (byte) WalRecordFormat.BKPBLOCK_HAS_IMAGE);
        bytes.putShort(at + 4, (short) image.length);
        bytes.putShort(at + 6, (short) lower);
        bytes.putByte(
                at + 8,
                (byte)
                        (method
                                | WalRecordFormat.BKPIMAGE_APPLY
                                | (hole == 0 ? 0 : WalRecordFormat.BKPIMAGE_HAS_HOLE)));
        at += 9;
        if (method != 0 && hole != 0) {
            bytes.putShort(at, (short) hole);
            at += 2;
        }
        bytes.putInt(at, 1663);
        bytes.putInt(at + 4, 5);
        bytes.putInt(at + 8, 16384);
        bytes.putInt(at + 12, 77);
        at += 16;
        bytes.putBytes(at, image);
        return record.decode(bytes, 0, at + image.length, 100, 200);
    }
}
