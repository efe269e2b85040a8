package org.pgkernel.base;

import java.util.concurrent.locks.LockSupport;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.RefusedException;

/**
 * Reads pg_control and judges it. The version comes before the checksum, for other versions keep
 * their checksum elsewhere; what the cluster was built with comes after it, when the fields can be
 * believed.
 */
final class ControlFileReader {
    private static final int TRIES = 10;
    private static final long PAUSE_NANOS = 10_000_000L;

    private ControlFileReader() {}

    static void read(Disk disk, String path, UnsafeBuffer image, Crc32c crc) {
        DiskFile file = disk.openReadOnly(path);
        if (file == null) {
            throw new RefusedException(
                    "this is not a PostgreSQL data directory, it has no control file: file="
                            + path);
        }
        try (file) {
            int last = 0;
            for (int tries = 1; ; tries++) {
                checkSize(file.size(), path);
                int length = file.read(image.addressOffset(), ControlFile.FILE_SIZE, 0);
                checkSize(length, path);
                checkVersion(image, path);
                int sum = crcOf(image, crc);
                if (sum == image.getInt(ControlFile.CRC)) {
                    break;
                }
                // A server may be overwriting the file: two equal sums in a row show that it is
                // not.
                if (tries > 1 && sum == last || tries == TRIES) {
                    checkCrc(image, crc, path);
                }
                last = sum;
                LockSupport.parkNanos(PAUSE_NANOS);
            }
        }
        checkFields(image, path);
    }

    static int crcOf(DirectBuffer image, Crc32c crc) {
        crc.reset();
        crc.update(image, 0, ControlFile.CRC);
        return crc.value();
    }

    static void checkSize(long size, String path) {
        if (size != ControlFile.FILE_SIZE) {
            throw new DamagedDataException(
                    "the control file has "
                            + size
                            + " bytes instead of "
                            + ControlFile.FILE_SIZE
                            + ": file="
                            + path);
        }
    }

    static void checkCrc(DirectBuffer image, Crc32c crc, String path) {
        int sum = crcOf(image, crc);
        int stored = image.getInt(ControlFile.CRC);
        // BASE-8
        if (sum != stored) {
            throw new DamagedDataException(
                    String.format(
                            "incorrect checksum in the control file, crc is %08x but should be %08x: file=%s",
                            stored, sum, path));
        }
    }

    static void checkVersion(DirectBuffer image, String path) {
        int version = image.getInt(ControlFile.PG_CONTROL_VERSION_OFFSET);
        if (version == ControlFile.PG_CONTROL_VERSION) {
            return;
        }
        String major = majorOfControlVersion(version);
        if (major != null) {
            throw new RefusedException(
                    "the cluster belongs to PostgreSQL "
                            + major
                            + " (pg_control_version "
                            + version
                            + "), only 15 is served: file="
                            + path);
        }
        if (majorOfControlVersion(Integer.reverseBytes(version)) != null) {
            throw new RefusedException(
                    "the cluster was made on a machine of the other byte order (pg_control_version "
                            + Integer.toUnsignedString(version)
                            + "): file="
                            + path);
        }
        throw new DamagedDataException(
                "pg_control_version "
                        + Integer.toUnsignedString(version)
                        + " is none that PostgreSQL ever had: file="
                        + path);
    }

    static void checkFields(MutableDirectBuffer image, String path) {
        int catalog = image.getInt(ControlFile.CATALOG_VERSION_NO_OFFSET);
        if (catalog != ControlFile.CATALOG_VERSION_NO) {
            throw new RefusedException(
                    "the cluster belongs to "
                            + majorOfCatalogVersion(catalog)
                            + " (catalog_version_no "
                            + Integer.toUnsignedString(catalog)
                            + "), only PostgreSQL 15 is served: file="
                            + path);
        }
        require("maxAlign", image.getInt(ControlFile.MAX_ALIGN), 8, path);
        double format = image.getDouble(ControlFile.FLOAT_FORMAT);
        if (format != ControlFile.FLOAT_FORMAT_VALUE) {
            throw new RefusedException(
                    "floatFormat is " + format + ", another floating-point format: file=" + path);
        }
        require("blcksz", image.getInt(ControlFile.BLCKSZ), Page.SIZE, path);
        require(
                "relseg_size",
                image.getInt(ControlFile.RELSEG_SIZE),
                ControlFile.BLOCKS_PER_SEGMENT,
                path);
        require("xlog_blcksz", image.getInt(ControlFile.XLOG_BLCKSZ), 8192, path);
        require("nameDataLen", image.getInt(ControlFile.NAME_DATA_LEN), 64, path);
        require("indexMaxKeys", image.getInt(ControlFile.INDEX_MAX_KEYS), 32, path);
        require("toast_max_chunk_size", image.getInt(ControlFile.TOAST_MAX_CHUNK_SIZE), 1996, path);
        require("loblksize", image.getInt(ControlFile.LOBLKSIZE), 2048, path);
        require("float8ByVal", image.getByte(ControlFile.FLOAT8_BY_VAL), 1, path);
        int segment = image.getInt(ControlFile.XLOG_SEG_SIZE);
        if (Integer.bitCount(segment) != 1 || segment < 1 << 20 || segment > 1 << 30) {
            throw new RefusedException(
                    "xlog_seg_size is "
                            + Integer.toUnsignedString(segment)
                            + ", not a power of two between 1 MB and 1 GB: file="
                            + path);
        }
        int checksums = image.getInt(ControlFile.DATA_CHECKSUM_VERSION);
        if (checksums != 0 && checksums != 1) {
            throw new RefusedException(
                    "data_checksum_version is "
                            + Integer.toUnsignedString(checksums)
                            + ", only 0 and 1 are known: file="
                            + path);
        }
        if (DbState.of(image.getInt(ControlFile.STATE)) == null) {
            throw new DamagedDataException(
                    "state is "
                            + image.getInt(ControlFile.STATE)
                            + ", which is no state of a cluster: file="
                            + path);
        }
        image.setMemory(
                ControlFile.DATA_SIZE, ControlFile.FILE_SIZE - ControlFile.DATA_SIZE, (byte) 0);
    }

    private static void require(String field, int found, int needed, String path) {
        if (found != needed) {
            throw new RefusedException(
                    field
                            + " is "
                            + Integer.toUnsignedString(found)
                            + " but only "
                            + needed
                            + " is served: file="
                            + path);
        }
    }

    private static String majorOfControlVersion(int version) {
        return switch (version) {
            case 903 -> "9.0 or 9.1";
            case 922 -> "9.2";
            case 937 -> "9.3";
            case 942 -> "9.4 or 9.5";
            case 960 -> "9.6";
            case 1002 -> "10";
            case 1100 -> "11";
            case 1201 -> "12";
            case 1300 -> "13 to 16";
            case 1700 -> "17";
            case 1800 -> "18";
            default -> null;
        };
    }

    private static String majorOfCatalogVersion(int catalog) {
        return switch (catalog) {
            case 202007201 -> "PostgreSQL 13";
            case 202107181 -> "PostgreSQL 14";
            case 202307071 -> "PostgreSQL 16";
            default -> "no released PostgreSQL";
        };
    }
}
