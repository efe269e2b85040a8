package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.TreeMap;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.testkit.SimulatedDisk;

/** Pages that somebody has added and not come to yet. */
final class NewPageTest {
    private static final VacuumOptions NO_CUT = VacuumOptions.DEFAULT.withTruncate(false);
    private static final String TEXT = "x".repeat(700);
    private static final String LONG_TEXT = "y".repeat(1900);
    private static final int LONG_ROWS_A_PAGE = 4;

    /** (PostgreSQL: XLOG_HEAP_INIT_PAGE.) */
    private static final int INIT_PAGE = 0x80;

    private static int[] add(VacuumRig v, HeapRig.Session owner, int count) {
        int[] added = new int[count];
        for (int got = 0; got < count; ) {
            int[] some = new int[count - got];
            int now =
                    owner.buffers.extendBy(
                            v.table.storage(), ForkNumber.MAIN, some.length, null, some, false);
            System.arraycopy(some, 0, added, got, now);
            got += now;
        }
        return added;
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    @DisplayName(
            "C19: new pages that vacuum saw and others filled before their owner came are formatted once")
    void aNewPageBelongsToWhoeverLocksItFirst(int count) {
        try (VacuumRig v = new VacuumRig(3)) {
            VacuumRig.Worker one = v.worker();
            one.fill(20, TEXT);
            int first = v.blocks();
            HeapRig.Session owner = v.rig.session();
            int[] added = add(v, owner, count);
            assertEquals(first + count, v.blocks());
            one.vacuum(NO_CUT, null);
            for (int i = 0; i < count; i++) {
                assertEquals(8160, v.recordedFree(first + i));
                assertTrue(Page.isNew(v.rig.page(v.table.storage(), ForkNumber.MAIN, first + i)));
            }
            v.worker().fill(count * LONG_ROWS_A_PAGE, LONG_TEXT);
            assertEquals(first + count, v.blocks(), "others found them through the map");
            owner.begin();
            owner.backend.state(v.table).targetBlock = first;
            long tid = owner.insert(v.table, 5000, LONG_TEXT);
            owner.commit();
            assertTrue(TupleId.block(tid) >= first + count, "another page: " + tid);
            for (int buffer : added) {
                owner.buffers.release(buffer);
            }
            assertEquals(20 + count * LONG_ROWS_A_PAGE + 1, one.rows().size());
            assertFormattedOnce(v);
            one.vacuum();
            v.check();
            v.checkEveryCut();
        }
    }

    private static void assertFormattedOnce(VacuumRig v) {
        TreeMap<Integer, Integer> formatted = new TreeMap<>();
        v.rig.forEachRecord(
                record -> {
                    if (record.rmid() == HeapRecords.HEAP_RMID
                            && (record.info() & INIT_PAGE) != 0) {
                        formatted.merge(record.blockNumber(0), 1, Integer::sum);
                    }
                });
        assertEquals(v.blocks(), formatted.size());
        assertTrue(formatted.values().stream().allMatch(times -> times == 1), "" + formatted);
    }

    @Test
    @DisplayName("C19: pages of zeros that a crash left are given back by vacuum")
    void zeroPagesLeftByACrashAreReclaimed() {
        VacuumRig v = new VacuumRig(4);
        v.worker().fill(20, TEXT);
        int before = v.blocks();
        add(v, v.rig.session(), 8);
        assertEquals(before + 8, v.blocks());
        v.rig.smgr.syncRequests().process();
        v.dead = true;
        try (VacuumRig after = new VacuumRig(v.rig.crash(SimulatedDisk.KEEP_ALL))) {
            assertEquals(before + 8, after.blocks());
            assertEquals(8, after.worker().vacuum().removedPages());
            assertEquals(before, after.blocks());
            assertEquals(20, after.worker().rows().size());
            after.check();
        }
        v.close();
    }
}
