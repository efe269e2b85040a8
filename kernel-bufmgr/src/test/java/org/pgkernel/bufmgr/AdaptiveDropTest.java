package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.smgr.SmgrRelation;

/** What ADAPTIVE decides, and that it never looks at descriptors in proportion to the pool. */
class AdaptiveDropTest {
    private static final int NBUFFERS = 1 << 20;
    private static final int FILLED = 15_000;

    @TempDir Path directory;

    private static DropDecision only(PoolFixture f) {
        List<DropDecision> decisions = f.pool.dropStatistics().decisions();
        assertEquals(1, decisions.size(), decisions::toString);
        return decisions.getFirst();
    }

    private static void drop(PoolFixture f, int... rels) {
        SmgrRelation[] relations = new SmgrRelation[rels.length];
        for (int i = 0; i < rels.length; i++) {
            relations[i] = f.relation(rels[i]);
        }
        f.pool.dropRelations(relations, rels.length);
        PoolInspection.check(f.pool);
    }

    private PoolFixture open(boolean inRecovery) {
        return new PoolFixture(directory, inRecovery).pool(NBUFFERS, true, DropStrategy.ADAPTIVE);
    }

    @Test
    void itIsTheDefault() {
        assertEquals(DropStrategy.ADAPTIVE, BufferPoolOptions.of(64).strategy());
        assertEquals(32, BufferPoolOptions.of(64).lookupDivisor());
        assertThrows(RefusedException.class, () -> BufferPoolOptions.of(64).withLookupDivisor(0));
    }

    @Test
    @DisplayName("C04: sizes unknown, in recovery and on the primary: a few lookups")
    void sizesAreNotNeeded() {
        for (boolean inRecovery : new boolean[] {true, false}) {
            try (PoolFixture f = new PoolFixture(directory.resolve("" + inRecovery), inRecovery)) {
                fill(f.pool(NBUFFERS, true, DropStrategy.ADAPTIVE));
                f.create(1, ForkNumber.MAIN, 3);
                f.create(1, ForkNumber.FSM, 2);
                f.relation(1).forgetSizes();
                drop(f, 1);
                DropDecision d = only(f);
                assertEquals(DropPath.LOOKUP, d.path());
                assertEquals(DropReason.FEW_BLOCKS, d.reason());
                assertEquals(5, d.probes());
                assertEquals(5, d.buffersDropped());
                assertEquals(0, d.bytesScanned());
            }
        }
    }

    @Test
    @DisplayName(
            "A relation that nobody has touched, such as a never-written TOAST heap: nothing is looked at")
    void whatIsNotResidentCostsNothing() {
        try (PoolFixture f = open(true)) {
            f.create(1, ForkNumber.MAIN, 3);
            f.pool.dropDatabase(PoolFixture.DB + 1);
            drop(f, 2, 3);
            assertEquals(2, f.pool.dropStatistics().nothingResident);
            assertEquals(0, f.pool.dropStatistics().probes + f.pool.dropStatistics().bytesScanned);
            assertEquals(3, PoolInspection.descriptors(f.pool).size());
        }
    }

    @Test
    void aDatabaseIsLookedUpThroughItsRelations() {
        try (PoolFixture f = fill(open(true))) {
            f.create(1, ForkNumber.MAIN, 2);
            f.create(2, ForkNumber.MAIN, 2);
            SmgrRelation other = f.smgr.open(PoolFixture.SPC, 6, 1);
            other.create(ForkNumber.MAIN, true);
            f.pool.release(f.pool.extend(other, ForkNumber.MAIN, false));
            f.pool.dropDatabase(PoolFixture.DB);
            DropDecision d = only(f);
            assertEquals(DropKind.DATABASE, d.kind());
            assertEquals(DropPath.LOOKUP, d.path());
            assertEquals(4, d.buffersDropped());
            assertEquals(FILLED + 1, PoolInspection.descriptors(f.pool).size());
            PoolInspection.check(f.pool);
        }
    }

    @Test
    void aPageFarOutIsFoundByTheScanAndANearOneByATrialBefore() {
        try (PoolFixture f = open(true)) {
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 60);
            f.create(2, ForkNumber.MAIN, 60);
            ghost(f, r, 1_000_000); // end = 1,000,001; but block 0 is the only one of relation 2
            ghost(f, f.relation(2), 1_000_000);
            evict(f, r, 0, 60);
            evict(f, f.relation(2), 1, 60);
            evict(f, f.relation(2), 1_000_000, 1_000_001);

            String plan = f.pool.explainDrop(f.relation(2));
            assertTrue(plan.contains("main fork 1 resident below block 1000001"), plan);
            drop(f, 2);
            DropDecision near = only(f);
            assertEquals(DropPath.LOOKUP, near.path());
            assertEquals(DropStopReason.COUNT_REACHED, near.stop());
            assertEquals(1, near.probes());

            drop(f, 1);
            DropDecision far = f.pool.dropStatistics().decisions().getLast();
            assertEquals(DropPath.FINGERPRINT_SCAN, far.path());
            assertEquals(DropReason.COUNT_NOT_REACHED, far.reason());
            assertEquals(1, far.buffersDropped());
            assertTrue(far.bytesScanned() <= 2 * 200, "scans buffers in use only: " + far);
            assertTrue(
                    far.toString().startsWith("relations: fingerprint scan (count not reached), "),
                    far.toString());
            assertEquals(0, PoolInspection.descriptors(f.pool).size());
        }
    }

    @Test
    void aTruncationKeepsWhatIsBelowAndLowersTheEnd() {
        try (PoolFixture f = fill(open(true))) {
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
            ForkNumber[] main = {ForkNumber.MAIN};
            f.pool.dropRelationForks(r, main, new int[] {37}, 1);
            assertEquals(3, only(f).probes());
            assertEquals(3, only(f).buffersDropped());
            f.pool.dropRelationForks(r, main, new int[] {37}, 1);
            assertEquals(1, f.pool.dropStatistics().nothingResident, "nothing past the end");
            f.pool.dropRelationForks(r, main, new int[] {35}, 1);
            assertEquals(
                    5, f.pool.dropStatistics().probes, "up to the lowered end, not to the old one");
            assertEquals(FILLED + 35, PoolInspection.descriptors(f.pool).size());
            PoolInspection.check(f.pool);
        }
    }

    @Test
    void oneScanServesManyRelations() {
        try (PoolFixture f = open(true)) {
            int[] rels = new int[50];
            for (int i = 0; i < rels.length; i++) {
                rels[i] = i % 2 == 0 ? i + 1 : 0x80000000 + i;
                f.create(rels[i], ForkNumber.MAIN, 3);
                ghost(f, f.relation(rels[i]), 100_000);
            }
            f.create(1000, ForkNumber.MAIN, 5);
            drop(f, rels);
            DropDecision d = only(f);
            assertEquals(DropPath.FINGERPRINT_SCAN, d.path());
            assertEquals(DropReason.ABOVE_THRESHOLD, d.reason());
            assertEquals(200, d.buffersDropped());
            assertEquals(1, d.calls());
            assertTrue(d.bytesScanned() <= 2 * 205);
            assertEquals(5, PoolInspection.descriptors(f.pool).size());
        }
    }

    @Test
    void lookupsDivisorIsItsLimit() {
        for (int divisor : new int[] {1, 32, 128}) {
            try (PoolFixture f = new PoolFixture(directory.resolve("" + divisor), true)) {
                f.pool(
                        BufferPoolOptions.of(1024)
                                .withStrategy(DropStrategy.LOOKUP)
                                .withLookupDivisor(divisor),
                        new DropParts());
                f.create(1, ForkNumber.MAIN, 1024 / divisor < 100 ? 1024 / divisor - 1 : 100);
                drop(f, 1);
                assertEquals(1, f.pool.dropStatistics().lookups, "below");
                if (divisor > 1) {
                    f.create(2, ForkNumber.MAIN, 1024 / divisor);
                    assertTrue(f.pool.explainDrop(f.relation(2)).endsWith(": full scan"));
                    drop(f, 2);
                    assertEquals(1, f.pool.dropStatistics().fullScans, "at it");
                }
            }
        }
    }

    /**
     * The scan is cheap while few buffers are in use: fills some with another relation's pages, of
     * another database.
     */
    private static PoolFixture fill(PoolFixture f) {
        SmgrRelation other = f.smgr.open(PoolFixture.SPC, 99, 99);
        for (int i = 0; i < FILLED; i++) {
            ghost(f, other, i);
        }
        return f;
    }

    private static void ghost(PoolFixture f, SmgrRelation relation, int block) {
        int b = f.pool.read(relation, ForkNumber.MAIN, block, ReadMode.ZERO_AND_LOCK);
        f.pool.unlock(b);
        f.pool.release(b);
    }

    private static void evict(PoolFixture f, SmgrRelation r, int from, int to) {
        for (int block = from; block < to; block++) {
            int b = f.pool.allocator.probe(r.spcOid(), r.dbOid(), r.relNumber(), 0, block);
            assertTrue(f.pool.allocator.invalidate(b, f.pool.descriptors.lockHeader(b)));
        }
    }
}
