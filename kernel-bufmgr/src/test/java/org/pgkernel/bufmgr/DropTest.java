package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.BufferTag;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

@Timeout(60)
class DropTest {
    private static final ForkNumber[] ALL = {
        ForkNumber.MAIN, ForkNumber.FSM, ForkNumber.VISIBILITY_MAP
    };

    @TempDir Path directory;

    /** A relation of three forks, 6 + 3 + 1 blocks, all resident, some dirty. */
    private static SmgrRelation threeForks(PoolFixture f, int rel) {
        SmgrRelation r = f.create(rel, ForkNumber.MAIN, 6);
        f.create(rel, ForkNumber.FSM, 3);
        f.create(rel, ForkNumber.VISIBILITY_MAP, 1);
        f.change(r, ForkNumber.MAIN, 0, 1);
        f.change(r, ForkNumber.MAIN, 5, 1);
        f.change(r, ForkNumber.FSM, 2, 1);
        f.change(r, ForkNumber.VISIBILITY_MAP, 0, 1);
        return r;
    }

    private static long resident(PoolFixture f, int rel) {
        return PoolInspection.descriptors(f.pool).stream()
                .filter(d -> d.relation().relNumber() == rel)
                .count();
    }

    /** Runs until a round finds nothing to write. */
    private static void runBackgroundWriter(PoolFixture f) {
        long[] now = {0};
        BackgroundWriter writer =
                f.pool.backgroundWriter(BackgroundWriterOptions.DEFAULT, () -> now[0]);
        // The hand has moved on, so that there is something to write ahead of it.
        for (int round = 0; round < 50; round++) {
            now[0] += Math.max(0, writer.nanosUntilDue());
            writer.doWork();
        }
        assertTrue(writer.written() > 0, "the background writer had nothing to do");
    }

    /** Which files of a relation were opened. */
    private static List<String> of(List<String> opened, int rel) {
        return opened.stream().filter(p -> p.matches(".*/" + rel + "(_.*|\\..*)?")).toList();
    }

    @ParameterizedTest
    @EnumSource(DropStrategy.class)
    @DisplayName(
            "C01, BUF-7: after a drop nothing names the relation; checkpoint, background writer and eviction"
                    + " never look for its files")
    void nothingOutlivesADrop(DropStrategy strategy) throws Exception {
        for (boolean inRecovery : new boolean[] {true, false}) {
            try (PoolFixture f =
                    new PoolFixture(directory.resolve(strategy + "-" + inRecovery), inRecovery)) {
                f.pool(1024, true, strategy);
                SmgrRelation r = threeForks(f, 1);
                f.create(1, ForkNumber.INIT, 1);
                f.change(r, ForkNumber.INIT, 0, 1);
                SmgrRelation s = threeForks(f, 2);
                int never = f.pool.extend(r, ForkNumber.MAIN, true); // dirty, never written
                f.stamp(never, 1, 6, 1);
                f.pool.markDirty(never);
                f.pool.unlock(never);
                f.pool.release(never);
                f.pool.dropRelations(new SmgrRelation[] {r}, 1);
                f.smgr.unlinkAll(new SmgrRelation[] {r}, 1, true);
                assertEquals(0, resident(f, 1));
                PoolInspection.check(f.pool);
                List<String> opened = new CopyOnWriteArrayList<>();
                f.disk.afterOpen = (path, offset) -> opened.add(path);
                f.disk.beforeWrite = f.disk.afterOpen;
                assertEquals(4, f.pool.flushAll());
                SmgrRelation other = f.create(3, ForkNumber.MAIN, 1024);
                for (int block = 0; block < 1024; block++) {
                    f.change(other, ForkNumber.MAIN, block, 1);
                }
                runBackgroundWriter(f);
                f.evictAll(other);
                assertEquals(0, resident(f, 2), "the pool was not filled");
                assertEquals(List.of(), of(opened, 1));
                assertFalse(of(opened, 3).isEmpty());
                for (ForkNumber fork : ForkNumber.values()) {
                    assertFalse(Files.exists(f.file(r, fork)));
                }
                assertEquals(1, f.readVersion(s, ForkNumber.MAIN, 5));
                assertDecision(f.pool.dropStatistics(), strategy, inRecovery);
            }
        }
    }

    /** One call, by the strategy's own way. */
    private static void assertDecision(
            DropStatistics stats, DropStrategy strategy, boolean inRecovery) {
        boolean scan =
                strategy == DropStrategy.FULL_SCAN
                        || strategy == DropStrategy.LOOKUP && !inRecovery;
        boolean lookup =
                strategy == DropStrategy.LOOKUP && inRecovery || strategy == DropStrategy.ADAPTIVE;
        assertEquals(12, stats.buffersDropped);
        assertEquals(1, stats.calls);
        assertEquals(lookup ? 1 : 0, stats.lookups + stats.fingerprintScans);
        assertEquals(scan ? 1 : 0, stats.fullScans);
        assertEquals(strategy == DropStrategy.DLIST ? 1 : 0, stats.listWalks);
        if (strategy == DropStrategy.LOOKUP) {
            assertEquals(lookup ? 12 : 0, stats.probes);
        }
    }

    @Test
    @DisplayName(
            "C04: an existing fork of unknown size forces the scan; a fork that does not exist does not; one such relation forces it for the batch")
    void unknownSizesForceTheScan() {
        try (PoolFixture f =
                new PoolFixture(directory, true).pool(4096, true, DropStrategy.LOOKUP)) {
            DropStatistics stats = f.pool.dropStatistics();
            threeForks(f, 1);
            threeForks(f, 2);
            f.create(3, ForkNumber.MAIN, 2); // no other fork exists
            threeForks(f, 4);

            f.pool.dropRelations(new SmgrRelation[] {f.relation(1), f.relation(3)}, 2);
            assertEquals(1, stats.lookups, "all known, missing forks count as empty");
            assertEquals(12, stats.probes);
            assertEquals(0, resident(f, 1) + resident(f, 3));

            f.relation(2).forgetSizes();
            f.relation(2).nblocks(ForkNumber.MAIN);
            f.pool.dropRelations(new SmgrRelation[] {f.relation(4), f.relation(2)}, 2);
            assertEquals(1, stats.fullScans, "FSM and VM of one relation unknown");
            assertEquals(0, resident(f, 2) + resident(f, 4));

            SmgrRelation r = threeForks(f, 5);
            r.forgetSizes();
            r.nblocks(ForkNumber.MAIN);
            f.pool.dropRelationForks(r, new ForkNumber[] {ForkNumber.MAIN}, new int[] {3}, 1);
            assertEquals(2, stats.lookups, "only the fork at hand matters to a truncation");
            assertEquals(7, resident(f, 5));
            f.pool.dropRelationForks(r, ALL, new int[] {1, 1, 0}, 3);
            assertEquals(2, stats.fullScans);
            assertEquals(2, resident(f, 5));
            PoolInspection.check(f.pool);
        }
    }

    @Test
    @DisplayName("C04: outside recovery a remembered size is no proof")
    void outsideRecoveryTheScanIsTaken() {
        try (PoolFixture f =
                new PoolFixture(directory, false).pool(4096, true, DropStrategy.LOOKUP)) {
            SmgrRelation r = threeForks(f, 1);
            f.pool.dropRelationForks(r, ALL, new int[] {2, 1, 0}, 3);
            assertEquals(1, f.pool.dropStatistics().fullScans);
            assertEquals(0, f.pool.dropStatistics().lookups);
            assertEquals(3, resident(f, 1));
        }
    }

    @Test
    @DisplayName(
            "C05: block counts are unsigned and widened; a negative difference counts as nothing")
    void blockCountsDoNotOverflow() {
        long a = LookupDropper.blocksToDrop(0x60000000, 0);
        long b = LookupDropper.blocksToDrop(0x90000000, 0);
        long c = LookupDropper.blocksToDrop(0xFFFFFFFE, 0);
        assertEquals(0x60000000L, a);
        assertEquals(0x90000000L, b);
        assertEquals(0xFFFFFFFEL, c);
        long threshold = (1 << 26) / 32;
        for (long sum : new long[] {a, b, c, a + b, a + c, b + c, a + b + c}) {
            assertTrue(sum > 0);
            assertFalse(LookupDropper.probingPays(sum, threshold));
        }
        assertEquals(0, LookupDropper.blocksToDrop(5, 9));
        assertEquals(0, LookupDropper.blocksToDrop(5, 0x90000000));
        assertEquals(1, LookupDropper.blocksToDrop(0x90000001, 0x90000000));
        assertTrue(LookupDropper.probingPays(threshold - 1, threshold));
        assertFalse(LookupDropper.probingPays(threshold, threshold));
    }

    @Test
    @DisplayName(
            "C05: huge sparse relations go to the scan at once; a first block past the end drops nothing")
    void hugeRelationsAreScanned() {
        try (PoolFixture f =
                new PoolFixture(directory, true).pool(1024, true, DropStrategy.LOOKUP)) {
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 2);
            int b = f.pool.read(r, ForkNumber.MAIN, 0, ReadMode.NORMAL);
            r.extend(ForkNumber.MAIN, 100_000, f.pool.pageAddress(b), true);
            f.pool.release(b);
            assertEquals(100_001, r.nblocks(ForkNumber.MAIN));
            long start = System.nanoTime();
            f.pool.dropRelationForks(r, new ForkNumber[] {ForkNumber.MAIN}, new int[] {1}, 1);
            assertEquals(1, f.pool.dropStatistics().fullScans);
            assertEquals(1, resident(f, 1));
            f.pool.dropRelationForks(
                    r, new ForkNumber[] {ForkNumber.MAIN}, new int[] {0xF0000000}, 1);
            assertEquals(1, f.pool.dropStatistics().lookups);
            assertEquals(0, f.pool.dropStatistics().probes);
            assertEquals(1, resident(f, 1));
            assertTrue(System.nanoTime() - start < 5_000_000_000L);
        }
    }

    @ParameterizedTest
    @EnumSource(DropStrategy.class)
    void manyRelationsAreDroppedInOnePass(DropStrategy strategy) {
        try (PoolFixture f = new PoolFixture(directory, true).pool(4096, true, strategy)) {
            SmgrRelation[] relations = new SmgrRelation[60];
            for (int i = 0; i < 60; i++) {
                // Numbers on both sides of 2^31, and the same number in another place.
                int rel = i % 2 == 0 ? 0x7FFFFFE0 + i : 0x80000000 + i;
                f.create(rel, ForkNumber.MAIN, 2);
                relations[59 - i] = f.relation(rel);
            }
            SmgrRelation twin = f.smgr.open(1664, 0, relations[0].relNumber());
            twin.create(ForkNumber.MAIN, true);
            f.pool.release(f.pool.extend(twin, ForkNumber.MAIN, false));
            f.pool.dropRelations(relations, 50);
            assertEquals(100, f.pool.dropStatistics().buffersDropped);
            List<PoolInspection.Descriptor> left = PoolInspection.descriptors(f.pool);
            assertEquals(21, left.size());
            // ADAPTIVE knows that every block is there, so that looking all of them up is cheapest.
            boolean looksUp = strategy == DropStrategy.LOOKUP || strategy == DropStrategy.ADAPTIVE;
            assertEquals(looksUp ? 1 : 0, f.pool.dropStatistics().lookups);
            PoolInspection.check(f.pool);
        }
    }

    @ParameterizedTest
    @EnumSource(DropStrategy.class)
    void aDatabaseIsDroppedWhole(DropStrategy strategy) {
        try (PoolFixture f = new PoolFixture(directory, true).pool(256, true, strategy)) {
            threeForks(f, 1);
            SmgrRelation other = f.smgr.open(PoolFixture.SPC, 6, 1);
            other.create(ForkNumber.MAIN, true);
            f.pool.release(f.pool.extend(other, ForkNumber.MAIN, false));
            f.pool.dropDatabase(PoolFixture.DB);
            assertEquals(10, f.pool.dropStatistics().buffersDropped);
            assertEquals(1, PoolInspection.descriptors(f.pool).size());
            assertEquals(0, f.pool.flushAll());
            PoolInspection.check(f.pool);
        }
    }

    @ParameterizedTest
    @EnumSource(DropStrategy.class)
    void aDropWaitsForAPageThatIsBeingWritten(DropStrategy strategy) throws Exception {
        try (PoolFixture f = new PoolFixture(directory, true).pool(1024, true, strategy)) {
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 3);
            f.change(r, ForkNumber.MAIN, 1, 5);
            CountDownLatch writing = new CountDownLatch(1);
            CountDownLatch goOn = new CountDownLatch(1);
            f.disk.beforeWrite =
                    (path, offset) -> {
                        writing.countDown();
                        ReadAndExtendTest.await(goOn);
                    };
            Thread cleaner = new Thread(() -> f.pool.flushAll());
            cleaner.start();
            ReadAndExtendTest.await(writing);
            Thread dropper = new Thread(() -> f.pool.dropRelations(new SmgrRelation[] {r}, 1));
            dropper.start();
            dropper.join(100);
            assertTrue(dropper.isAlive(), "did not wait for the writer");
            goOn.countDown();
            cleaner.join();
            dropper.join();
            assertEquals(0, resident(f, 1));
            assertEquals(5, f.versionOnDisk(r, ForkNumber.MAIN, 1));
            PoolInspection.check(f.pool);
        }
    }

    @Test
    void theScanLooksAtEveryDescriptor() {
        try (PoolFixture f =
                new PoolFixture(directory, true).pool(1024, true, DropStrategy.FULL_SCAN)) {
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 3);
            // A page in the very last buffer, which the high-water mark has not reached.
            int last = 1023;
            int hash = BufferTag.hash(PoolFixture.SPC, PoolFixture.DB, 1, 0, 77);
            f.pool.table.lockExclusive(f.pool.table.partition(hash));
            int state = f.pool.descriptors.lockHeader(last);
            f.pool.descriptors.setTag(last, PoolFixture.SPC, PoolFixture.DB, 1, 0, 77);
            f.pool.descriptors.unlockHeader(
                    last, state | BufferState.TAG_VALID | BufferState.VALID);
            f.pool.table.insert(hash, last);
            f.pool.table.unlock(f.pool.table.partition(hash));
            f.pool.dropRelations(new SmgrRelation[] {r}, 1);
            assertEquals(4, f.pool.dropStatistics().buffersDropped);
        }
    }
}
