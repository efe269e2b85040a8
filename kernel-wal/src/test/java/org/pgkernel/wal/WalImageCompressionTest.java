package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Random;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.RefusedException;

class WalImageCompressionTest {
    @Test
    void compressedImagesAreSmallerAndReadBackAsThePage() {
        for (ImageCompression method : ImageCompression.values()) {
            for (int hole : new int[] {0, 4, 3000}) {
                byte[] page = page(hole, 20);
                WalRecordBuilder builder = new WalRecordBuilder(method);
                int length = insertAndCompare(builder, page);
                assertTrue(
                        method == ImageCompression.OFF
                                ? length > Page.SIZE - hole
                                : length < (Page.SIZE - hole) / 2,
                        method + " hole " + hole + " length " + length);
            }
        }
    }

    /** A page that compression would only make longer goes in as it is. */
    @Test
    void pageThatDoesNotShrinkIsLoggedAsItIs() {
        int plain = insertAndCompare(new WalRecordBuilder(), page(100, 256));
        for (ImageCompression method : ImageCompression.values()) {
            assertEquals(plain, insertAndCompare(new WalRecordBuilder(method), page(100, 256)));
        }
    }

    @Test
    void settingIsReadByPostgresWords() {
        assertEquals(ImageCompression.ZSTD, ImageCompression.of("zstd"));
        assertEquals(ImageCompression.OFF, ImageCompression.of("off"));
        assertEquals(ImageCompression.PGLZ, ImageCompression.of("pglz"));
        assertEquals(ImageCompression.PGLZ, ImageCompression.of("on"));
        assertTrue(
                assertThrows(RefusedException.class, () -> ImageCompression.of("LZ5"))
                        .getMessage()
                        .contains("wal_compression"));
    }

    /**
     * @return the record's length
     */
    private static int insertAndCompare(WalRecordBuilder builder, byte[] page) {
        try (WalLog log = new WalLog(1 << 16);
                WalInserter inserter = log.inserter(1 << 16)) {
            builder.begin(10, 0, 1);
            for (int id = 0; id < 2; id++) {
                builder.image(id, 1663, 5, 99, ForkNumber.MAIN, id, new UnsafeBuffer(page), true);
            }
            builder.blockData(1, new UnsafeBuffer(page), 0, 10);
            inserter.flush(inserter.insert(builder));
            List<WalLog.Copy> read = log.read();
            assertEquals(1, read.size(), () -> log.end.toString());
            for (int id = 0; id < 2; id++) {
                assertArrayEquals(page, read.get(0).blocks().get(id).image().array());
            }
            assertEquals(10, read.get(0).blocks().get(1).data().limit());
            return builder.encodedLength() / 2;
        }
    }

    /**
     * @param values how many different bytes
     */
    private static byte[] page(int hole, int values) {
        byte[] page = new byte[Page.SIZE];
        Random random = new Random(hole);
        for (int i = 0; i < page.length; i++) {
            page[i] = (byte) (values == 256 ? random.nextInt(256) : (i / 16) % values);
        }
        UnsafeBuffer view = new UnsafeBuffer(page);
        int lower = 1000;
        Page.setLower(view, lower);
        Page.setUpper(view, lower + hole);
        view.setMemory(lower, hole, (byte) 0);
        return page;
    }
}
