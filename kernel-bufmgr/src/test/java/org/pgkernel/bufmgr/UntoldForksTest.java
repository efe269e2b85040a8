package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/**
 * ADAPTIVE tells a fork's count late, once for many pages, while the buffers are free at once: so
 * more forks may be counted than there are buffers. There must be entries for them.
 */
@Timeout(60)
class UntoldForksTest {
    private static final int BUFFERS = 512;
    private static final int DROPPED = 400;

    /** So far from the fork's beginning that a scan is cheaper than lookups. */
    private static final int BLOCK = 5000;

    @TempDir Path directory;

    @Test
    void aScansBuffersMayGoToNewForksBeforeItHasToldItsCounts() {
        int[] next = {1 + BUFFERS};
        int[] most = {0};
        boolean[] dropping = {false};
        PoolFixture f = new PoolFixture(directory, true);
        f.pool(
                BufferPoolOptions.of(BUFFERS).withStrategy(DropStrategy.ADAPTIVE),
                new DropParts() {
                    @Override
                    BufferReplacement replacement(
                            BufferPoolOptions options,
                            PoolMemory memory,
                            BufferDescriptors descriptors,
                            PinRetention retention) {
                        return new BufferReplacement(
                                memory,
                                descriptors,
                                policy(options, memory, descriptors, retention),
                                options.nbuffers()) {
                            @Override
                            void free(int buffer) {
                                super.free(buffer);
                                if (dropping[0]) { // as another thread would
                                    page(f, next[0]++);
                                    int forks = ((ResidentForks) f.pool.tracker).size();
                                    most[0] = Math.max(most[0], forks);
                                }
                            }
                        };
                    }
                });
        SmgrRelation[] victims = new SmgrRelation[DROPPED];
        for (int rel = 1; rel < next[0] + DROPPED; rel++) {
            f.relation(rel).create(ForkNumber.MAIN, true);
        }
        for (int rel = 1; rel <= BUFFERS; rel++) {
            page(f, rel);
            if (rel <= DROPPED) {
                victims[rel - 1] = f.relation(rel);
            }
        }
        dropping[0] = true;
        f.pool.dropRelations(victims, DROPPED);
        dropping[0] = false;
        assertEquals(
                DropPath.FINGERPRINT_SCAN,
                f.pool.dropStatistics().decisions().stream().findFirst().get().path());
        assertEquals(DROPPED, next[0] - 1 - BUFFERS, "each victim's buffer was taken at once");
        assertTrue(most[0] > BUFFERS, "or nothing was told late");
        assertTrue(most[0] <= BUFFERS + DropWork.MOST_UNTOLD, "more forks untold: " + most[0]);
        assertEquals(BUFFERS, PoolInspection.descriptors(f.pool).size());
        for (SmgrRelation victim : victims) {
            assertTrue(f.pool.explainDrop(victim).contains("nothing resident"));
        }
        PoolInspection.check(f.pool);
        f.close();
    }

    private static void page(PoolFixture f, int rel) {
        f.pool.release(f.pool.read(f.relation(rel), ForkNumber.MAIN, BLOCK, ReadMode.NORMAL));
    }
}
