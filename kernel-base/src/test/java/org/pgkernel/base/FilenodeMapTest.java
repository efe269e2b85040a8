package org.pgkernel.base;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.RefusedException;

final class FilenodeMapTest {
    /** The shared map of a fresh PostgreSQL 15 cluster. */
    private static final String REAL =
            "1727590030000000ee040000ee040000940b0000940b0000bd040000bd040000ec040000ec040000ed040000ed040000"
                    + "be040000be0400005c0900005c0900007017000070170000080e0000080e00006318000063180000d4170000d4170000"
                    + "51100000511000005210000052100000960b0000960b0000970b0000970b000059100000591000005a1000005a100000"
                    + "4f1000004f10000050100000501000001e0b00001e0b00001f0b00001f0b000055100000551000005610000056100000"
                    + "dc0f0000dc0f0000dd0f0000dd0f00006418000064180000651800006518000057100000571000005810000058100000"
                    + "6f0a00006f0a0000700a0000700a0000950b0000950b0000890a0000890a00008a0a00008a0a0000740a0000740a0000"
                    + "750a0000750a0000860a0000860a0000870a0000870a0000d0040000d0040000d1040000d10400005d0900005d090000"
                    + "71170000711700007217000072170000090e0000090e000066180000661800006718000067180000e2170000e2170000"
                    + "e3170000e3170000";

    private static final String REAL_CRC = "09901d7d";

    private final Disk disk = new PosixDisk();

    @TempDir Path directory;

    private static byte[] real() {
        byte[] bytes = Arrays.copyOf(HexFormat.of().parseHex(REAL), 512);
        System.arraycopy(HexFormat.of().parseHex(REAL_CRC), 0, bytes, 504, 4);
        return bytes;
    }

    private FilenodeMap read(byte[] bytes) throws Exception {
        Files.write(directory.resolve("pg_filenode.map"), bytes);
        return FilenodeMap.read(disk, directory.toString());
    }

    private void isDamaged(byte[] bytes, String word) {
        DamagedDataException e = assertThrows(DamagedDataException.class, () -> read(bytes));
        assertTrue(
                e.getMessage().contains(word) && e.getMessage().contains("file="), e.getMessage());
    }

    @Test
    void mapThatPostgresWroteIsReadAndWrittenBackUnchanged() throws Exception {
        FilenodeMap map = read(real());
        assertEquals(48, map.size());
        assertEquals(1262, map.relNumberOf(1262), "pg_database is mapped to its own oid at first");
        assertEquals(0, map.relNumberOf(1259), "pg_class is not in the shared map");
        Files.delete(directory.resolve("pg_filenode.map"));
        map.write(disk, directory.toString(), true);
        assertArrayEquals(real(), Files.readAllBytes(directory.resolve("pg_filenode.map")));
    }

    @Test
    void changedMappingReplacesTheOldOne() throws Exception {
        FilenodeMap map = read(real());
        map.put(1262, 20000);
        map.put(99, 20001);
        assertEquals(49, map.size());
        map.write(disk, directory.toString(), true);
        FilenodeMap again = FilenodeMap.read(disk, directory.toString());
        assertEquals(20000, again.relNumberOf(1262));
        assertEquals(20001, again.relNumberOf(99));
        assertEquals(1260, again.relNumberOf(1260));
    }

    @Test
    void fullMapRefusesAnother() {
        FilenodeMap map = new FilenodeMap();
        for (int i = 1; i <= FilenodeMap.MAX_MAPPINGS; i++) {
            map.put(i, i);
        }
        map.put(7, 8);
        assertThrows(RefusedException.class, () -> map.put(1000, 1000));
    }

    // BASE-8
    @Test
    void anySingleChangedByteIsDamage() {
        for (int at = 0; at < 508; at++) {
            byte[] bytes = real();
            bytes[at] ^= 0x41;
            assertThrows(DamagedDataException.class, () -> read(bytes), "byte " + at);
        }
    }

    @Test
    void damageIsNamed() {
        isDamaged(Arrays.copyOf(real(), 511), "511 bytes");
        byte[] magic = real();
        magic[0]++;
        isDamaged(magic, "magic");
        byte[] count = real();
        count[4] = 63;
        isDamaged(count, "num_mappings is 63");
        byte[] body = real();
        body[100]++;
        isDamaged(body, "checksum");
        assertEquals(
                DiskException.ENOENT,
                assertThrows(
                                DiskException.class,
                                () -> FilenodeMap.read(disk, directory.resolve("none").toString()))
                        .errno());
    }

    @Test
    void mapOfARecordNeedsNoChecksumButASaneCount() {
        byte[] bytes = real();
        bytes[504]++;
        FilenodeMap map = FilenodeMap.decode(new UnsafeBuffer(bytes), 0, 512, "lsn=0/1");
        UnsafeBuffer out = new UnsafeBuffer(new byte[600]);
        map.encode(out, 88);
        assertArrayEquals(
                real(),
                Arrays.copyOfRange(out.byteArray(), 88, 600),
                "writing puts the checksum right");
        assertThrows(DamagedDataException.class, () -> FilenodeMap.decode(out, 0, 511, "lsn=0/1"));
        bytes[7] = -1;
        assertThrows(
                DamagedDataException.class,
                () -> FilenodeMap.decode(new UnsafeBuffer(bytes), 0, 512, "lsn=0/1"));
    }
}
