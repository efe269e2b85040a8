package org.pgkernel.recovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Clock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.DbState;

/** What the gate says that it would do is what it does. */
class MinimumRecoveryPointTest {
    private static final int REL = 16384;

    @TempDir Path dir;

    private TestCluster cluster;
    private ControlFileKeeper control;
    private final ReplayState state = new ReplayState();
    private MinimumRecoveryPoint gate;

    @BeforeEach
    void make() throws IOException {
        cluster = new TestCluster(dir);
        cluster.shutdownCheckpoint(DbState.SHUTDOWNED);
        control = ControlFileKeeper.read(cluster.disk, dir.toString(), Clock.systemUTC());
        gate = new MinimumRecoveryPoint(control, state);
    }

    @AfterEach
    void close() {
        control.close();
        cluster.close();
    }

    @Test
    void inCrashRecoveryNothingHasToBeMadeDurable() {
        assertFalse(gate.wouldFlush(Long.MAX_VALUE));
        gate.beforeWrite(Long.MAX_VALUE);
        assertEquals(0, control.minRecoveryPoint());
    }

    @Test
    void inArchiveRecoveryAPagePastTheMinimumRecoveryPointHasToWait() {
        gate.startUpdating();
        state.replayEndLsn = 5000;
        state.replayEndTimeline = 1;
        assertTrue(gate.wouldFlush(4000));
        assertEquals(0, control.minRecoveryPoint(), "asking moves nothing");
        gate.beforeWrite(4000);
        assertEquals(5000, control.minRecoveryPoint());
        assertFalse(gate.wouldFlush(4000));
        assertFalse(gate.wouldFlush(5000));
        assertTrue(gate.wouldFlush(5001));
    }

    @Test
    void afterRecoveryAPagePastTheFlushedWalHasToWait() {
        gate.startUpdating();
        long before = cluster.wal.writer.nextRecordLsn();
        cluster.wal.writer.flush();
        gate.switchTo(CheckpointWal.of(cluster.wal.writer));
        assertFalse(gate.wouldFlush(before));
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        long after = cluster.wal.writer.nextRecordLsn();
        assertTrue(gate.wouldFlush(after));
        gate.beforeWrite(after);
        assertFalse(gate.wouldFlush(after));
        assertEquals(0, control.minRecoveryPoint(), "the point of a recovery that is over");
    }
}
