package org.pgkernel.wal;

import java.util.Locale;
import org.pgkernel.base.error.RefusedException;

/** How full-page images are compressed. (PostgreSQL: wal_compression.) */
public enum ImageCompression {
    OFF(0),
    PGLZ(WalRecordFormat.BKPIMAGE_COMPRESS_PGLZ),
    LZ4(WalRecordFormat.BKPIMAGE_COMPRESS_LZ4),
    ZSTD(WalRecordFormat.BKPIMAGE_COMPRESS_ZSTD);

    /** The flag in bimg_info. */
    final int flag;

    ImageCompression(int flag) {
        this.flag = flag;
    }

    /**
     * By the value of PostgreSQL's setting; {@code on} means pglz there.
     *
     * @throws RefusedException for any other word
     */
    public static ImageCompression of(String setting) {
        if (setting.equals("on")) {
            return PGLZ;
        }
        for (ImageCompression each : values()) {
            if (each.name().toLowerCase(Locale.ROOT).equals(setting)) {
                return each;
            }
        }
        throw new RefusedException(
                "full-page images cannot be compressed by \""
                        + setting
                        + "\": off, on, pglz, lz4 and zstd are known wal_compression");
    }
}
