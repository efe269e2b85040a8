package org.pgkernel.wal;

import io.airlift.compress.v3.lz4.Lz4JavaDecompressor;
import io.airlift.compress.v3.zstd.ZstdJavaDecompressor;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.pgkernel.base.Page;

/**
 * Turns a full-page image as logged back into a page. Keeps its scratch memory; not thread-safe.
 * (PostgreSQL: RestoreBlockImage, xlogreader.c.)
 */
final class ImageRestorer {
    private final byte[] compressed = new byte[Page.SIZE];
    private final byte[] raw = new byte[Page.SIZE];
    private final Lz4JavaDecompressor lz4 = new Lz4JavaDecompressor();
    private final ZstdJavaDecompressor zstd = new ZstdJavaDecompressor();

    /**
     * @param info bimg_info
     * @return false when the image does not decompress to exactly a page without its hole
     */
    boolean restore(
            DirectBuffer from,
            int offset,
            int length,
            int info,
            int holeOffset,
            int holeLength,
            MutableDirectBuffer page) {
        int tail = holeOffset + holeLength;
        if ((info & WalRecordFormat.BKPIMAGE_COMPRESSED) == 0) {
            page.putBytes(0, from, offset, holeOffset);
            page.putBytes(tail, from, offset + holeOffset, Page.SIZE - tail);
        } else {
            from.getBytes(offset, compressed, 0, length);
            if (!decompress(length, info, Page.SIZE - holeLength)) {
                return false;
            }
            page.putBytes(0, raw, 0, holeOffset);
            page.putBytes(tail, raw, holeOffset, Page.SIZE - tail);
        }
        page.setMemory(holeOffset, holeLength, (byte) 0);
        return true;
    }

    private boolean decompress(int length, int info, int rawSize) {
        if ((info & WalRecordFormat.BKPIMAGE_COMPRESS_PGLZ) != 0) {
            return Pglz.decompress(compressed, length, raw, rawSize);
        }
        try {
            int size =
                    (info & WalRecordFormat.BKPIMAGE_COMPRESS_LZ4) != 0
                            ? lz4.decompress(compressed, 0, length, raw, 0, rawSize)
                            : zstd.decompress(compressed, 0, length, raw, 0, rawSize);
            return size == rawSize;
        } catch (RuntimeException e) {
            // MalformedInputException, and whatever else garbage may provoke in a decoder.
            return false;
        }
    }
}
