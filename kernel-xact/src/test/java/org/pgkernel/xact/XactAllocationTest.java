package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.*;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.disk.PosixDisk;

class XactAllocationTest {
    private static final int ROUNDS = 20_000;
    private static final long LIMIT = 2_000;

    @TempDir Path directory;

    /**
     * Bytes of the best run; interpreted code allocates what compiled code does not, so it is run
     * until it is compiled.
     */
    static long bytesOfWarm(Runnable round) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long end = System.nanoTime() + 15_000_000_000L;
        long best = Long.MAX_VALUE;
        do {
            long before = threads.getCurrentThreadAllocatedBytes();
            round.run();
            best = Math.min(best, threads.getCurrentThreadAllocatedBytes() - before);
        } while (best >= LIMIT && System.nanoTime() < end);
        return best;
    }

    @Test
    void commitsAndMultixactsAllocateNothing() throws IOException {
        Files.createDirectories(directory.resolve("pg_xact"));
        XactModule module = new XactModule(new PosixDisk(), directory.toString());
        UnsafeBuffer subxids = new UnsafeBuffer(new byte[40]);
        UnsafeBuffer members = new UnsafeBuffer(new byte[16]);
        UnsafeBuffer data = new UnsafeBuffer(new byte[64]);
        XactRecord record = new XactRecord();
        long bytes =
                bytesOfWarm(
                        () -> {
                            for (int i = 0; i < ROUNDS; i++) {
                                for (int s = 0; s < 10; s++) {
                                    subxids.putInt(s * 4, 100 + i + s * 5000);
                                }
                                record.parse(0, data, 64, true);
                                module.commitLog()
                                        .setTreeStatus(99 + i, subxids, 0, 10, CommitLog.COMMITTED);
                                module.multiXacts()
                                        .record(1 + i % 5000, 1 + i % 5000 * 2, members, 0, 2);
                                ((XactCounters) module.counters()).advancePastXid(i + 5000);
                            }
                        });
        assertTrue(bytes < LIMIT, "bytes in " + ROUNDS + " commits: " + bytes);
    }
}
