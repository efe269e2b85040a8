package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** HEAP-23: inserting, fetching and scanning allocate nothing once their memory has grown. */
class HeapAllocationTest {
    private static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(
                    Attribute.of("a", "int4"),
                    Attribute.of("b", "int8"),
                    Attribute.of("c", "text"));
    private static final int ROUNDS = 30;

    private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    /**
     * Most rounds must be clean: one in a while the disk or a page that is added takes something.
     */
    private void assertAllocatesNothing(Runnable work) {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < ROUNDS; i++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            work.run();
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
        }
        assertEquals(0, least);
    }

    @Test
    void insertsFetchesAndScansAllocateNothing() {
        try (HeapRig rig = new HeapRig(1, 512)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            RowValues row = HeapRig.row(table, 7, 70L, "some text of a usual length");
            RowValues[] rows = new RowValues[10];
            Arrays.fill(rows, row);
            long[] tids = new long[10];
            session.begin();
            session.inserter.insert(table, row);
            assertAllocatesNothing(
                    () -> {
                        for (int i = 0; i < 20; i++) {
                            session.inserter.insert(table, row);
                        }
                    });
            assertAllocatesNothing(() -> session.inserter.multiInsert(table, rows, 10, tids, null));
            session.commit();
            session.begin();
            RowValues read = new RowValues(COLUMNS);
            long[] sum = new long[1];
            assertAllocatesNothing(
                    () -> {
                        session.scan.begin(table, session.mvcc);
                        while (session.scan.next()) {
                            session.scan.tuple().read(read);
                            sum[0] += read.number(0);
                        }
                    });
            assertTrue(sum[0] > 0);
            assertAllocatesNothing(
                    () -> {
                        for (int i = 1; i <= 20; i++) {
                            long tid = TupleId.of(i & 1, i);
                            session.fetch.fetch(table, tid, session.mvcc);
                            session.fetch.fetchHot(table, tid, session.mvcc);
                        }
                    });
            session.fetch.close();
            session.commit();
        }
    }
}
