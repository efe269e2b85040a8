package org.pgkernel.recovery;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.DbState;

class RedoAllocationTest {
    private static final int RECORDS = 200_000;

    @TempDir Path dir;

    @Test
    void theRedoLoopAllocatesNothingPerRecord() throws IOException {
        try (TestCluster cluster = new TestCluster(dir)) {
            cluster.shutdownCheckpoint(DbState.SHUTDOWNED);
            cluster.wal.heap(TinyHeap.INIT, 16384, 20);
            for (int block = 0; block < 20; block++) {
                cluster.wal.heap(TinyHeap.INIT, 16384, block);
            }
            for (int i = 0; i < RECORDS; i++) {
                cluster.wal.heap(TinyHeap.SET, 16384, i % 20, 20);
            }
            try (Recovery recovery = cluster.open(Recovery.Mode.STANDBY)) {
                recovery.begin();
                ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
                // The last stretches, once the compiler has seen the loop. The segment files that
                // are opened cost a little.
                long best = Long.MAX_VALUE;
                long stretch = (cluster.wal.writer.nextRecordLsn() - cluster.checkpointLsn) / 20;
                for (long stop = cluster.checkpointLsn + stretch;
                        recovery.replayedTo() < cluster.wal.writer.nextRecordLsn() - 100;
                        stop += stretch) {
                    long records = recovery.records();
                    long before = threads.getCurrentThreadAllocatedBytes();
                    recovery.replay(stop);
                    long bytes = threads.getCurrentThreadAllocatedBytes() - before;
                    best = Math.min(best, bytes * 1000 / Math.max(1, recovery.records() - records));
                }
                assertTrue(recovery.records() >= RECORDS);
                assertTrue(best < 1000, "bytes per 1000 records: " + best);
            }
        }
    }
}
