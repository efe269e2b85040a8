package org.pgkernel.recovery;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.DbState;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageVerify;

/** A relation is copied page by page, each page logged as an image, as PostgreSQL copies one. */
class PageCopyTest {
    private static final int COPY = 16385;
    private static final int MARK = 4000;

    /** Blocks of zeros: in the middle, and the last one. */
    private static final int BLOCKS = 5;

    private static final boolean[] ZEROS = {false, true, false, true, true};

    @TempDir Path dir;

    private static UnsafeBuffer source(int block) {
        UnsafeBuffer page = new UnsafeBuffer(ByteBuffer.allocateDirect(Page.SIZE));
        if (!ZEROS[block]) {
            Page.init(page, 0);
            page.putInt(MARK, 100 + block);
        }
        return page;
    }

    @ParameterizedTest
    @EnumSource
    @DisplayName(
            "C31 (2): zero pages of a copied relation stay zeros through their images, on disk too")
    void zeroPagesAreCopiedAsZeros(Recovery.Mode mode) throws IOException {
        long[] ends = new long[BLOCKS];
        try (TestCluster cluster = new TestCluster(dir)) {
            cluster.checksums = true;
            cluster.shutdownCheckpoint(
                    mode == Recovery.Mode.CRASH ? DbState.IN_PRODUCTION : DbState.SHUTDOWNED);
            for (int block = 0; block < BLOCKS; block++) {
                cluster.wal.image(XlogRedo.FPI, COPY, ForkNumber.MAIN, block, source(block));
                ends[block] = cluster.wal.writer.nextRecordLsn();
            }
            // Crash recovery twice: the second one finds the pages of the first on the disk.
            for (int run = 0; run < (mode == Recovery.Mode.CRASH ? 2 : 1); run++) {
                replay(cluster, mode);
                check(ends);
            }
        }
    }

    /** As far as all pages being on the disk; nothing says so yet, as if it had crashed then. */
    private static void replay(TestCluster cluster, Recovery.Mode mode) {
        try (Recovery recovery = cluster.open(mode)) {
            recovery.begin();
            recovery.replay(0);
            recovery.pool().flushAll();
        }
    }

    private void check(long[] ends) throws IOException {
        byte[] file = Files.readAllBytes(dir.resolve("base/5/" + COPY));
        assertEquals(BLOCKS * Page.SIZE, file.length);
        for (int block = 0; block < BLOCKS; block++) {
            byte[] bytes = Arrays.copyOfRange(file, block * Page.SIZE, (block + 1) * Page.SIZE);
            if (ZEROS[block]) {
                assertArrayEquals(new byte[Page.SIZE], bytes, "block " + block);
                continue;
            }
            UnsafeBuffer page = new UnsafeBuffer(ByteBuffer.allocateDirect(Page.SIZE));
            page.putBytes(0, bytes);
            assertEquals(100 + block, page.getInt(MARK));
            assertEquals(ends[block], Page.lsn(page));
            assertTrue(Page.checksum(page) != 0);
            assertTrue(PageVerify.isValid(page, block, true), "block " + block);
        }
    }
}
