package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;

/** The hot paths of the README allocate nothing once warm. */
class AllocationTest {
    private static final int CALLS = 20_000;

    @TempDir Path directory;

    /** Sums results, so that no call is thought useless. */
    private long sink;

    @Test
    @DisplayName(
            "SMGR-7 open, create in redo, sizes, reads, writes and sync requests allocate nothing")
    void hotPathsAllocateNothing() {
        try (Fixture f = new Fixture(directory, SizePolicy.RECOVERY_ONLY)) {
            f.manager.inRecovery(true);
            SmgrRelation relation = f.filled(100, 20);
            relation.nblocks(Fixture.MAIN);
            relation.exists(ForkNumber.FSM);
            assertNoAllocation(
                    "open", i -> sink += f.manager.open(Fixture.SPC, Fixture.DB, 100).relNumber());
            assertNoAllocation("create", i -> relation.create(Fixture.MAIN, true));
            assertNoAllocation("nblocks", i -> sink += relation.nblocks(Fixture.MAIN));
            assertNoAllocation(
                    "rememberedSize", i -> sink += relation.rememberedSize(Fixture.MAIN));
            assertNoAllocation("exists", i -> sink += relation.exists(ForkNumber.FSM) ? 1 : 2);
            assertNoAllocation(
                    "register", i -> f.requests.register(Fixture.SPC, Fixture.DB, 100, 0, i % 3));
            assertNoAllocation("read", i -> relation.read(Fixture.MAIN, i % 20, f.address));
            assertNoAllocation(
                    "write", i -> relation.write(Fixture.MAIN, i % 20, f.address, false));
            assertNoAllocation(
                    "extend", i -> relation.extend(Fixture.MAIN, i % 20, f.address, false));
            long[] addresses = {f.address, f.address, f.address, f.address};
            assertNoAllocation(
                    "readMany",
                    i -> sink += relation.readMany(Fixture.MAIN, i % 16, addresses, 0, 4));
        }
    }

    private interface Call {
        void call(int i);
    }

    private static void assertNoAllocation(String what, Call call) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long least = Long.MAX_VALUE;
        // Compilation happens when it pleases, late on a busy machine; one clean round is the
        // proof.
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (least >= CALLS && end - System.nanoTime() > 0) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < CALLS; i++) {
                call.call(i);
            }
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
        }
        assertTrue(least < CALLS, what + " allocates " + least + " bytes in " + CALLS + " calls");
    }
}
