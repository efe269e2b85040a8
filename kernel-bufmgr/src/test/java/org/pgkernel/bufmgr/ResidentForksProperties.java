package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Pages of few forks come and go by chance, so that forks lose their last page and have pages
 * again, under the same entry or another: after each step counts, ends and databases' lists are a
 * model's, every entry has pages or is retired, and there are never more entries than forks had
 * pages at once. Forks with a fault each are found by that.
 */
class ResidentForksProperties {
    private static final int SPC = 1663;
    private static final int BUFFERS = 12;
    private static final int STEPS = 400;

    @Property(tries = 200)
    void countsEndsAndListsAreTheModels(@ForAll long seed) {
        run(new ResidentForks(BUFFERS, 16), seed);
    }

    enum Mutant {
        TAKES_THE_ENTRY_OF_A_FORK_WITH_PAGES,
        FORGETS_TO_RETIRE,
        RETIRES_TWICE,
        LEAVES_THE_ENTRY_IN_ITS_DATABASES_LIST,
        KEEPS_THE_OLD_END
    }

    @ParameterizedTest
    @EnumSource(Mutant.class)
    void everyMutantIsCaught(Mutant mutant) {
        for (int seed = 0; seed < 20; seed++) {
            int failing = seed;
            assertThrows(
                    AssertionError.class,
                    () -> run(new Faulty(mutant), failing),
                    () -> mutant + " survived seed " + failing);
        }
    }

    private record Fork(int db, int rel, int number) {}

    private static void run(ResidentForks forks, long seed) {
        try {
            Random random = new Random(seed);
            Fork[] held = new Fork[BUFFERS];
            Map<Fork, Integer> ends = new HashMap<>();
            int most = 0;
            for (int step = 0; step < STEPS; step++) {
                int buffer = random.nextInt(BUFFERS);
                Fork fork = held[buffer];
                if (fork != null) {
                    held[buffer] = null;
                    forks.unmapped(buffer, SPC, fork.db, fork.rel, fork.number);
                    if (count(held, fork) == 0) {
                        ends.remove(fork);
                    }
                } else {
                    int rel = 1 + random.nextInt(12);
                    fork = new Fork(rel % 3, rel, random.nextInt(2));
                    int block = random.nextInt(100);
                    held[buffer] = fork;
                    forks.mapped(buffer, SPC, fork.db, fork.rel, fork.number, block);
                    ends.merge(fork, block + 1, Math::max);
                }
                most = Math.max(most, ends.size());
                check(forks, held, ends, most);
            }
        } finally {
            forks.release();
        }
    }

    private static void check(
            ResidentForks forks, Fork[] held, Map<Fork, Integer> ends, int mostAtOnce) {
        for (int rel = 1; rel <= 12; rel++) {
            for (int number = 0; number < 2; number++) {
                Fork fork = new Fork(rel % 3, rel, number);
                long residents = forks.residents(SPC, fork.db, rel, number);
                assertEquals(count(held, fork), ResidentForks.pages(residents), "pages of " + fork);
                assertEquals(
                        ends.getOrDefault(fork, 0),
                        ResidentForks.end(residents),
                        "end of the pages of " + fork);
            }
        }
        for (int db = 0; db < 3; db++) {
            DropWork work = DropWork.begin();
            forks.addDatabase(db, work);
            Set<String> listed = new TreeSet<>();
            for (int i = 0; i < work.forks; i++) {
                Fork fork = new Fork(work.forkDb(i), work.forkRel(i), work.forkNumber(i));
                assertTrue(listed.add(fork.toString()), "twice in its database's list: " + fork);
                assertEquals(count(held, fork), work.left(i));
            }
            Set<String> expected = new TreeSet<>();
            for (Fork fork : ends.keySet()) {
                if (fork.db == db) {
                    expected.add(fork.toString());
                }
            }
            assertEquals(expected, listed, "forks of database " + db);
        }
        assertEquals(ends.size(), forks.size());
        assertTrue(forks.isConsistent(), "an entry neither has pages nor is retired");
        assertTrue(
                forks.forks().entriesTouched() <= mostAtOnce + 1,
                "more entries than forks, and one for a fork that comes before another goes");
    }

    private static int count(Fork[] held, Fork fork) {
        int count = 0;
        for (Fork one : held) {
            count += fork.equals(one) ? 1 : 0;
        }
        return count;
    }

    private static final class Faulty extends ResidentForks {
        private final Mutant mutant;

        Faulty(Mutant mutant) {
            super(BUFFERS, 16);
            this.mutant = mutant;
        }

        @Override
        boolean isReclaimed(int entry) {
            return super.isReclaimed(entry)
                    || mutant == Mutant.TAKES_THE_ENTRY_OF_A_FORK_WITH_PAGES;
        }

        @Override
        boolean discount(int entry, long word, int gone) {
            if (mutant == Mutant.FORGETS_TO_RETIRE && pages(word) == gone) {
                return forks().compareAndSetWord(entry, word, word - gone);
            }
            boolean done = super.discount(entry, word, gone);
            if (mutant == Mutant.RETIRES_TWICE && pages(word) == gone) {
                forks().retire(entry);
            }
            return done;
        }

        @Override
        void leaveDatabase(int entry, int hash, int db) {
            if (mutant != Mutant.LEAVES_THE_ENTRY_IN_ITS_DATABASES_LIST) {
                super.leaveDatabase(entry, hash, db);
            }
        }

        @Override
        void count(int entry, int end) {
            int old = forks().user(entry, 0);
            super.count(entry, end);
            if (mutant == Mutant.KEEPS_THE_OLD_END && old > end) {
                forks().user(entry, 0, old);
            }
        }
    }
}
