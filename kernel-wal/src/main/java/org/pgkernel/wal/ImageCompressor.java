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
    /**
     * From the beginning of one array to that of another. @return bytes, or less than 1 when it
     * does not fit
     */
    private interface Method {
        int compress(byte[] from, int length, byte[] to);
    }

    private final Method method;
    private final byte[] raw = new byte[Page.SIZE];

    /** The last image's bytes, from index 0 on. */
    final byte[] compressed;

    ImageCompressor(ImageCompression compression) {
        method =
                switch (compression) {
                    case PGLZ -> {
                        PglzCompressor pglz = new PglzCompressor();
                        yield (from, length, to) -> pglz.compress(from, 0, length, to);
                    }
                    case LZ4 -> of(new Lz4JavaCompressor());
                    case ZSTD -> of(new ZstdJavaCompressor());
                    case OFF -> throw new IllegalArgumentException("nothing to compress by");
                };
        // No method writes more, not even of a page that does not shrink; an image so long is
        // dropped.
        compressed = new byte[Page.SIZE + Page.SIZE / 64];
    }

    private static Method of(Compressor library) {
        return (from, length, to) -> library.compress(from, 0, length, to, 0, to.length);
    }

    /**
     * @return bytes in {@link #compressed}, or 0 when that, with its longer header, saves nothing
     */
    int compress(DirectBuffer page, int holeOffset, int holeLength) {
        int tail = holeOffset + holeLength;
        int rawLength = Page.SIZE - holeLength;
        page.getBytes(0, raw, 0, holeOffset);
        page.getBytes(tail, raw, holeOffset, Page.SIZE - tail);
        int length = method.compress(raw, rawLength, compressed);
        return length > 0 && length + (holeLength == 0 ? 0 : 2) < rawLength ? length : 0;
    }
}
