package org.pgkernel.wal;

import io.airlift.compress.v3.Compressor;
import io.airlift.compress.v3.lz4.Lz4JavaCompressor;
import io.airlift.compress.v3.zstd.ZstdJavaCompressor;
import org.agrona.DirectBuffer;
import org.pgkernel.base.Page;

/**
 * Compresses a page without its hole, the other way of {@link ImageRestorer}. Keeps its scratch
 * memory; not thread-safe. (PostgreSQL: XLogCompressBackupBlock.)
 */
final class ImageCompressor {
    private final Compressor compressor;
    private final byte[] raw = new byte[Page.SIZE];

    /** The last image's bytes, from index 0 on. */
    final byte[] compressed;

    ImageCompressor(ImageCompression method) {
        compressor =
                switch (method) {
                    case LZ4 -> new Lz4JavaCompressor();
                    case ZSTD -> new ZstdJavaCompressor();
                    case OFF -> throw new IllegalArgumentException("nothing to compress by");
                };
        compressed = new byte[compressor.maxCompressedLength(Page.SIZE)];
    }

    /**
     * @return bytes in {@link #compressed}, or 0 when that, with its longer header, saves nothing
     */
    int compress(DirectBuffer page, int holeOffset, int holeLength) {
        int tail = holeOffset + holeLength;
        int rawLength = Page.SIZE - holeLength;
        page.getBytes(0, raw, 0, holeOffset);
        page.getBytes(tail, raw, holeOffset, Page.SIZE - tail);
        int length = compressor.compress(raw, 0, rawLength, compressed, 0, compressed.length);
        return length + (holeLength == 0 ? 0 : 2) < rawLength ? length : 0;
    }
}
