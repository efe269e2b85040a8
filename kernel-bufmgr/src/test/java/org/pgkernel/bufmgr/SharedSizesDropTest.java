package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;

/** LOOKUP on a primary, where the size policy decides whether it may look up at all. */
class SharedSizesDropTest {
    private static final ForkNumber[] ALL = {
        ForkNumber.MAIN, ForkNumber.FSM, ForkNumber.VISIBILITY_MAP
    };

    @TempDir Path directory;

    private static SmgrRelation threeForks(PoolFixture f, int rel) {
        for (ForkNumber fork : ALL) {
            f.create(rel, fork, 4);
        }
        return f.relation(rel);
    }

    private static void assertDropped(PoolFixture f, int lookups, int fullScans) {
        assertEquals(0, f.pool.snapshot().summary().used(), "no buffer survives");
        assertEquals(lookups, f.pool.counters().value(PoolCounter.DROPS_BY_LOOKUP));
        assertEquals(fullScans, f.pool.counters().value(PoolCounter.DROPS_BY_FULL_SCAN));
        PoolInspection.check(f.pool);
    }

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    @DisplayName(
            "C04(3): outside recovery shared sizes are proof fork by fork, the faithful policy's never")
    void outsideRecovery(SizePolicy policy) {
        try (PoolFixture f =
                new PoolFixture(directory, false, policy).pool(4096, false, DropStrategy.LOOKUP)) {
            int shared = policy == SizePolicy.SHARED ? 1 : 0;
            SmgrRelation[] both = {threeForks(f, 1), threeForks(f, 2)};
            f.pool.dropRelations(both, 2);
            assertDropped(f, shared, 1 - shared);

            // One fork of one relation is unknown: it is asked by nobody here, so all is scanned.
            SmgrRelation[] batch = {threeForks(f, 3), threeForks(f, 4)};
            batch[1].forgetSizes();
            batch[1].nblocks(ForkNumber.MAIN);
            batch[1].nblocks(ForkNumber.FSM);
            f.pool.dropRelations(batch, 2);
            assertDropped(f, shared, 2 - shared);

            // A handle that was closed knows nothing, until it is asked.
            SmgrRelation[] one = {threeForks(f, 5)};
            f.smgr.close(one[0]);
            f.pool.dropRelations(one, 1);
            assertDropped(f, shared, 3 - shared);
            threeForks(f, 6);
            SmgrRelation[] again = {f.relation(6)};
            f.smgr.close(again[0]);
            for (ForkNumber fork : ALL) {
                again[0].nblocks(fork);
            }
            f.pool.dropRelations(again, 1);
            assertDropped(f, 2 * shared, 4 - 2 * shared);
        }
    }
}
