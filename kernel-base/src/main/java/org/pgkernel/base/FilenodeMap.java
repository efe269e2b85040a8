package org.pgkernel.base;

import java.nio.ByteBuffer;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.RefusedException;

/**
 * Which file holds which of the catalogs that cannot be looked up in pg_class: {@code
 * pg_filenode.map}, one for the shared catalogs in {@code global/} and one in each database's
 * directory. 512 bytes, one sector, overwritten in place:
 *
 * <pre>
 *   0 magic         4  0x592717
 *   4 num_mappings  4  0..62
 *   8 mappings      62 × { catalog's oid 4, relation file number 4 }, in no order
 * 504 crc           4  of bytes 0..503
 * 508 pad           4
 * 512
 * </pre>
 *
 * Also the data of a relation map WAL record. Mutable, not thread-safe. (PostgreSQL: RelMapFile,
 * relmapper.c.)
 */
public final class FilenodeMap {
    public static final String NAME = "pg_filenode.map";
    public static final int SIZE = 512;
    public static final int MAGIC = 0x592717;
    public static final int MAX_MAPPINGS = 62;

    private static final int NUM_MAPPINGS = 4;
    private static final int MAPPINGS = 8;
    private static final int CRC = 504;

    private final UnsafeBuffer image = new UnsafeBuffer(ByteBuffer.allocateDirect(SIZE));

    /** An empty map. */
    public FilenodeMap() {
        image.putInt(0, MAGIC);
    }

    /**
     * Reads the map of a directory ({@code global}, or a database's).
     *
     * @throws DamagedDataException when size, magic, count or checksum is wrong
     */
    public static FilenodeMap read(Disk disk, String directory) {
        String path = directory + "/" + NAME;
        FilenodeMap map = new FilenodeMap();
        try (DiskFile file = disk.openReadOnly(path)) {
            if (file == null) {
                throw new DiskException(
                        "could not open relation mapping file", path, DiskException.ENOENT);
            }
            int length = file.read(map.image.addressOffset(), SIZE, 0);
            if (length != SIZE) {
                throw new DamagedDataException(
                        "the relation mapping file has "
                                + length
                                + " bytes instead of "
                                + SIZE
                                + ": file="
                                + path);
            }
        }
        map.check("file=" + path, true);
        return map;
    }

    /**
     * Takes the map from a WAL record's data. Magic and checksum are not looked at, as PostgreSQL
     * does not: writing sets them.
     *
     * @param place what errors end in, {@code lsn=…}
     */
    public static FilenodeMap decode(DirectBuffer from, int offset, int length, String place) {
        if (length != SIZE) {
            throw new DamagedDataException(
                    "a relation map of " + length + " bytes instead of " + SIZE + ": " + place);
        }
        FilenodeMap map = new FilenodeMap();
        map.image.putBytes(0, from, offset, SIZE);
        map.check(place, false);
        return map;
    }

    private void check(String place, boolean sealed) {
        if (sealed && image.getInt(0) != MAGIC) {
            throw new DamagedDataException(
                    String.format(
                            "magic of the relation mapping file is %08x instead of %08x: %s",
                            image.getInt(0), MAGIC, place));
        }
        if (size() < 0 || size() > MAX_MAPPINGS) {
            throw new DamagedDataException(
                    "num_mappings is " + size() + ", not 0 to " + MAX_MAPPINGS + ": " + place);
        }
        // BASE-8
        if (sealed && image.getInt(CRC) != Crc32c.of(image, 0, CRC)) {
            throw new DamagedDataException(
                    "the relation mapping file has an incorrect checksum: " + place);
        }
    }

    /**
     * Overwrites the directory's map in place, creating it if need be, and makes the file durable.
     */
    public void write(Disk disk, String directory, boolean durable) {
        seal();
        try (DiskFile file = disk.openOrCreate(directory + "/" + NAME)) {
            file.write(image.addressOffset(), SIZE, 0);
            if (durable) {
                file.sync();
            }
        }
    }

    /** Puts the 512 bytes, magic and checksum included, at {@code offset} of {@code to}. */
    public void encode(MutableDirectBuffer to, int offset) {
        seal();
        to.putBytes(offset, image, 0, SIZE);
    }

    private void seal() {
        image.putInt(0, MAGIC);
        image.putInt(CRC, Crc32c.of(image, 0, CRC));
    }

    /** How many mappings there are. */
    public int size() {
        return image.getInt(NUM_MAPPINGS);
    }

    public int oid(int index) {
        assert index >= 0 && index < size();
        return image.getInt(MAPPINGS + 8 * index);
    }

    public int relNumber(int index) {
        assert index >= 0 && index < size();
        return image.getInt(MAPPINGS + 8 * index + 4);
    }

    /**
     * The relation file number of a catalog, 0 when the map has none. (PostgreSQL:
     * RelationMapOidToFilenode.)
     */
    public int relNumberOf(int oid) {
        for (int i = 0; i < size(); i++) {
            if (oid(i) == oid) {
                return relNumber(i);
            }
        }
        return 0;
    }

    /** Maps a catalog to a file, in place of an earlier mapping if there is one. */
    public void put(int oid, int relNumber) {
        int index = 0;
        while (index < size() && oid(index) != oid) {
            index++;
        }
        if (index == MAX_MAPPINGS) {
            throw new RefusedException(
                    "the relation map is full, "
                            + MAX_MAPPINGS
                            + " mappings: oid="
                            + Integer.toUnsignedString(oid));
        }
        image.putInt(NUM_MAPPINGS, Math.max(size(), index + 1));
        image.putInt(MAPPINGS + 8 * index, oid);
        image.putInt(MAPPINGS + 8 * index + 4, relNumber);
    }
}
