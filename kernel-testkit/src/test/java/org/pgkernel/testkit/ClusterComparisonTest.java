package org.pgkernel.testkit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.Page;

class ClusterComparisonTest {
    private static final String HEAP = "base/5/16384";

    @TempDir Path directory;

    private Path left;
    private Path right;

    @BeforeEach
    void twoEqualClusters() throws Exception {
        left = directory.resolve("left");
        for (String name : ClusterComparison.SLRUS) {
            Files.createDirectories(left.resolve(name));
        }
        Files.createDirectories(left.resolve("base/5"));
        Files.createDirectories(left.resolve("global"));
        Files.createDirectories(left.resolve("pg_wal"));
        byte[] bytes = new byte[300 * Page.SIZE];
        new Random(1).nextBytes(bytes);
        UnsafeBuffer page = new UnsafeBuffer(0, 0);
        for (int block = 0; block < 300; block++) {
            page.wrap(bytes, block * Page.SIZE, Page.SIZE);
            Page.init(page, 0);
            Page.setLower(page, Page.HEADER_SIZE + Page.ITEM_ID_SIZE);
            Page.setItemId(page, 1, Page.packItemId(8000, Page.LP_NORMAL, 60));
            Page.setUpper(page, 8000);
            Page.setLsn(page, 0x1_0000_0000L + block);
        }
        Files.write(left.resolve(HEAP), bytes);
        Files.write(left.resolve(HEAP + "_fsm"), new byte[3 * Page.SIZE]);
        Files.write(left.resolve(HEAP + ".1"), new byte[0]);
        Files.write(left.resolve("base/5/pg_filenode.map"), new byte[512]);
        Files.write(left.resolve("pg_xact/0000"), new byte[Page.SIZE]);
        Files.write(left.resolve("global/pg_control"), new byte[8192]);
        right = directory.resolve("right");
        ClusterCopy.copy(left, right);
    }

    @Test
    void copyEqualsItsSource() {
        ClusterComparison.Result result = ClusterComparison.compare(left, right);
        assertTrue(result.equal(), result.describe());
        assertEquals(305, result.pages());
        assertEquals(5, result.files());
    }

    @Test
    void oneFlippedBitAnywhereIsReportedAtItsPlace() throws Exception {
        flip(HEAP, 299L * Page.SIZE + 5000, 1);
        ClusterComparison.Difference difference = only();
        assertEquals(HEAP, difference.file());
        assertEquals(299, difference.block());
        assertEquals(5000, difference.offset());
        assertEquals(0x1_0000_0000L + 299, difference.leftLsn());
        String explanation = ClusterComparison.explain(left, right, difference);
        assertTrue(explanation.contains("hole at 5000"), explanation);
    }

    @Test
    void hintBitsLsnAndChecksumAreNotMasked() throws Exception {
        flip(HEAP, 8000 + 21, 0x01);
        assertEquals("hint bits", only().reason());
        flip(HEAP, 8000 + 21, 0x01);
        flip(HEAP, Page.PD_LSN, 1);
        assertEquals("pd_lsn", only().reason());
        flip(HEAP, Page.PD_LSN, 1);
        flip(HEAP, Page.PD_CHECKSUM, 1);
        assertEquals("pd_checksum", only().reason());
    }

    @Test
    void filesOnOneSideAndOtherLengthsAreReported() throws Exception {
        Files.delete(right.resolve(HEAP + ".1"));
        assertEquals("only on the left, 0 bytes", only().reason());
        Files.write(right.resolve(HEAP + ".1"), new byte[8192]);
        assertEquals("length 0 vs 8192", only().reason());
        Files.write(right.resolve(HEAP + ".1"), new byte[0]);
        Files.createDirectory(right.resolve("base/6"));
        assertEquals("only on the right, directory", only().reason());
    }

    @Test
    void aPieceOfAPageIsReportedThoughBothHaveIt() throws Exception {
        String segment = HEAP + "_fsm.1";
        for (Path side : new Path[] {left, right}) {
            Files.write(side.resolve(segment), new byte[2 * Page.SIZE + 3584]);
        }
        assertEquals(segment, only().file());
        assertEquals("length 19968 is no multiple of 8192", only().reason());
        Files.delete(left.resolve(segment));
        Files.delete(right.resolve(segment));
        assertTrue(ClusterComparison.compare(left, right).equal(), "a map's 512 bytes are none");
    }

    @Test
    void slruAndRelationMapCount() throws Exception {
        flip("pg_xact/0000", 17, 4);
        assertEquals("pg_xact/0000", only().file());
        flip("pg_xact/0000", 17, 4);
        flip("base/5/pg_filenode.map", 100, 4);
        assertEquals("base/5/pg_filenode.map", only().file());
    }

    @Test
    void freeSpaceMapsAreLeftOutOnlyOnRequest() throws Exception {
        flip(HEAP + "_fsm", 100, 4);
        assertFalse(ClusterComparison.compare(left, right).equal());
        assertTrue(ClusterComparison.compare(left, right, true).equal());
    }

    private ClusterComparison.Difference only() {
        ClusterComparison.Result result = ClusterComparison.compare(left, right);
        assertEquals(1, result.differenceCount(), result.describe());
        return result.differences().getFirst();
    }

    private void flip(String file, long at, int bits) throws Exception {
        byte[] bytes = Files.readAllBytes(right.resolve(file));
        bytes[(int) at] ^= (byte) bits;
        Files.write(right.resolve(file), bytes);
    }
}
