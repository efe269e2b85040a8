package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ResidentForksTest {
    private static final int SPC = 1663;

    private static int pages(ResidentForks forks, int db, int rel) {
        return ResidentForks.pages(forks.residents(SPC, db, rel, 0));
    }

    private static int end(ResidentForks forks, int db, int rel) {
        return ResidentForks.end(forks.residents(SPC, db, rel, 0));
    }

    @Test
    void countsAndEndsFollowThePages() {
        ResidentForks forks = new ResidentForks(64, 16);
        assertEquals(0, forks.residents(SPC, 5, 1, 0));
        forks.mapped(0, SPC, 5, 1, 0, 7);
        forks.mapped(1, SPC, 5, 1, 0, 3);
        forks.mapped(2, SPC, 5, 1, 0, 0xFFFFFFFE);
        forks.mapped(3, SPC, 5, 1, 1, 0); // another fork
        assertEquals(3, pages(forks, 5, 1));
        assertEquals(0xFFFFFFFF, end(forks, 5, 1));
        forks.unmapped(2, SPC, 5, 1, 0);
        assertEquals(2, pages(forks, 5, 1));
        assertEquals(0xFFFFFFFF, end(forks, 5, 1), "stays until the fork is truncated");
        forks.lowerEnd(SPC, 5, 1, 0, 8);
        assertEquals(8, end(forks, 5, 1));
        forks.lowerEnd(SPC, 5, 1, 0, 9);
        assertEquals(8, end(forks, 5, 1), "is lowered only");
        forks.unmapped(0, SPC, 5, 1, 0);
        forks.unmapped(1, SPC, 5, 1, 0);
        assertEquals(0, forks.residents(SPC, 5, 1, 0));
        assertEquals(1, forks.size(), "only the other fork");
        forks.mapped(0, SPC, 5, 1, 0, 2);
        assertEquals(3, end(forks, 5, 1), "the old end is forgotten with the last page");
        forks.release();
    }

    @Test
    void theNextNewForkTakesTheEntryOfOneWithoutPages() {
        ResidentForks forks = new ResidentForks(64, 16);
        for (int rel = 1; rel <= 3; rel++) {
            forks.mapped(rel, SPC, 5, rel, 0, 0);
        }
        forks.unmapped(2, SPC, 5, 2, 0);
        assertEquals(3, forks.forks().chained().cardinality(), "stays where it is");
        assertEquals(1, forks.forks().retired().cardinality());
        forks.mapped(2, SPC, 6, 4, 0, 8);
        assertEquals(3, forks.forks().entriesTouched());
        assertEquals(0, forks.forks().retired().cardinality());
        assertEquals(0, forks.residents(SPC, 5, 2, 0));
        assertEquals(9, end(forks, 6, 4));
        assertTrue(forks.isConsistent());
        forks.release();
    }

    @Test
    void aForkThatHasPagesAgainKeepsItsEntry() {
        ResidentForks forks = new ResidentForks(64, 16);
        forks.mapped(1, SPC, 5, 1, 0, 0);
        forks.unmapped(1, SPC, 5, 1, 0);
        forks.mapped(1, SPC, 5, 1, 0, 3);
        assertEquals(1, forks.forks().entriesTouched());
        forks.mapped(2, SPC, 5, 2, 0, 0); // and may not have it
        assertEquals(1, pages(forks, 5, 1));
        assertEquals(4, end(forks, 5, 1));
        assertEquals(2, forks.forks().entriesTouched());
        assertEquals(0, forks.forks().retired().cardinality());
        forks.unmapped(1, SPC, 5, 1, 0);
        assertEquals(1, forks.forks().retired().cardinality(), "until it has none again");
        forks.mapped(1, SPC, 7, 3, 0, 0);
        assertEquals(2, forks.forks().entriesTouched());
        assertTrue(forks.isConsistent());
        forks.release();
    }

    @Test
    void memoryIsBoundedByWhatIsResidentAtOnce() {
        ResidentForks forks = new ResidentForks(16, 16);
        for (int rel = 1; rel < 100_000; rel++) {
            forks.mapped(rel % 16, SPC, rel % 7, rel, 0, 0);
            if (rel >= 16) {
                int gone = rel - 15;
                forks.unmapped(gone % 16, SPC, gone % 7, gone, 0);
            }
        }
        assertEquals(16, forks.forks().entriesTouched());
        assertEquals(15, forks.size());
        assertTrue(forks.isConsistent());
        forks.release();
    }

    @Test
    void aDatabaseListsItsForksAndNoOthers() {
        ResidentForks forks = new ResidentForks(1024, 16);
        for (int i = 0; i < 1000; i++) {
            forks.mapped(i, SPC, i % 300, i, i % 4, 0);
        }
        for (int db = 0; db < 300; db++) {
            DropWork work = DropWork.begin();
            forks.addDatabase(db, work);
            assertEquals(db < 100 ? 4 : 3, work.forks);
            for (int i = 0; i < work.forks; i++) {
                assertEquals(db, work.forkDb(i));
                assertEquals(db, work.forkRel(i) % 300);
                assertEquals(work.forkRel(i) % 4, work.forkNumber(i));
                assertEquals(1, work.left(i));
            }
        }
        forks.release();
    }

    /** Few forks, so that entries come and go and are reused all the time. */
    @Test
    void aThreadNeverSeesFewerPagesThanItHasMapped() throws Exception {
        int threads = 4;
        int each = 6;
        ResidentForks forks = new ResidentForks(threads * each, 16);
        int[][] held = new int[threads][each]; // relation of each buffer, 0 for none
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread[] running = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            int me = t;
            running[t] =
                    new Thread(
                            () -> {
                                try {
                                    churn(forks, held[me], me * each);
                                } catch (Throwable e) {
                                    failure.compareAndSet(null, e);
                                }
                            });
            running[t].start();
        }
        for (Thread t : running) {
            t.join();
        }
        if (failure.get() != null) {
            throw new AssertionError(failure.get());
        }
        int resident = 0;
        for (int rel = 1; rel <= 5; rel++) {
            int expected = 0;
            for (int[] mine : held) {
                for (int r : mine) {
                    expected += r == rel ? 1 : 0;
                }
            }
            assertEquals(expected, pages(forks, rel % 2, rel));
            resident += expected > 0 ? 1 : 0;
        }
        assertEquals(resident, forks.size());
        assertTrue(forks.isConsistent());
        assertTrue(forks.forks().entriesTouched() <= 5 + threads, "entries were lost");
        assertFalse(forks.anyLockHeld());
        forks.release();
    }

    private static void churn(ResidentForks forks, int[] held, int firstBuffer) {
        long x = firstBuffer + 1;
        for (int step = 0; step < 60_000; step++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            int slot = (int) (x >>> 33) % held.length;
            int rel = held[slot];
            if (rel != 0) {
                forks.unmapped(firstBuffer + slot, SPC, rel % 2, rel, 0);
                held[slot] = 0;
                continue;
            }
            rel = 1 + (int) (x >>> 50) % 5;
            int block = (int) (x >>> 40) & 0xFF;
            held[slot] = rel;
            forks.mapped(firstBuffer + slot, SPC, rel % 2, rel, 0, block);
            int mine = 0;
            for (int r : held) {
                mine += r == rel ? 1 : 0;
            }
            long residents = forks.residents(SPC, rel % 2, rel, 0);
            assertTrue(ResidentForks.pages(residents) >= mine, "too few pages");
            assertTrue(
                    Integer.compareUnsigned(ResidentForks.end(residents), block) > 0,
                    "end too low");
        }
    }
}
