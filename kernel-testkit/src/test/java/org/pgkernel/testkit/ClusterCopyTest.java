package org.pgkernel.testkit;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ClusterCopyTest {
    private static final int SEGMENT = 16 * 1024 * 1024;

    @TempDir Path directory;

    @Test
    void copyStandsForItself() throws Exception {
        Path source = Files.createDirectories(directory.resolve("source"));
        Path elsewhere = Files.createDirectories(directory.resolve("wal"));
        Path tablespace = Files.createDirectories(directory.resolve("space/PG_15_202209061"));
        Files.write(elsewhere.resolve("000000010000000000000001"), new byte[SEGMENT]);
        Files.createSymbolicLink(source.resolve("pg_wal"), elsewhere);
        Files.createDirectories(source.resolve("pg_tblspc"));
        Files.createSymbolicLink(source.resolve("pg_tblspc/16999"), directory.resolve("space"));
        Files.writeString(tablespace.resolve("file"), "there");
        Files.writeString(source.resolve("postmaster.pid"), "1\n");
        byte[] odd = new byte[1_300_001];
        odd[1_200_000] = 7;
        Files.write(source.resolve("sparse"), odd);
        Path target = directory.resolve("target");

        ClusterCopy.copy(source, target);

        assertFalse(Files.exists(target.resolve("postmaster.pid")));
        assertFalse(Files.isSymbolicLink(target.resolve("pg_wal")));
        assertEquals(SEGMENT, Files.size(target.resolve("pg_wal/000000010000000000000001")));
        assertTrue(Files.isSymbolicLink(target.resolve("pg_tblspc/16999")));
        assertEquals(
                directory.resolve("target.tblspc/16999").toRealPath(),
                target.resolve("pg_tblspc/16999").toRealPath());
        assertEquals(
                "there", Files.readString(target.resolve("pg_tblspc/16999/PG_15_202209061/file")));
        assertArrayEquals(odd, Files.readAllBytes(target.resolve("sparse")));
    }

    @Test
    void cutZeroesTheRestAndRemovesLaterSegmentsOfEveryTimeline() throws Exception {
        Path wal = Files.createDirectories(directory.resolve("pg_wal"));
        byte[] full = new byte[SEGMENT];
        Arrays.fill(full, (byte) 1);
        for (String name :
                new String[] {
                    "000000010000000000000002",
                    "000000010000000000000003",
                    "000000010000000000000004",
                    "000000020000000100000000"
                }) {
            Files.write(wal.resolve(name), full);
        }
        Files.writeString(wal.resolve("00000002.history"), "1\n");

        WalCut.cut(directory, 0x3000128L);

        byte[] cut = Files.readAllBytes(wal.resolve("000000010000000000000003"));
        assertEquals(SEGMENT, cut.length);
        assertEquals(1, cut[0x127]);
        for (int at = 0x128; at < SEGMENT; at++) {
            assertEquals(0, cut[at]);
        }
        assertArrayEquals(full, Files.readAllBytes(wal.resolve("000000010000000000000002")));
        assertFalse(Files.exists(wal.resolve("000000010000000000000004")));
        assertFalse(Files.exists(wal.resolve("000000020000000100000000")));
        assertTrue(Files.exists(wal.resolve("00000002.history")));
    }
}
