package org.pgkernel.cluster;

import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.NanoClock;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.disk.Disk;

/** A small cluster whose workers are driven by hand, by a clock of the test's. */
final class TestRun {
    /** Moved by the test. */
    static final class HandClock implements NanoClock {
        long now = 1;

        @Override
        public long nanoTime() {
            return now;
        }

        void pass(long time, TimeUnit unit) {
            now += unit.toNanos(time);
        }
    }

    static final Path DATA = Path.of("/data");
    static final int SEGMENT = 1 << 20;

    private TestRun() {}

    static CreateOptions create(Disk disk) {
        return CreateOptions.defaults()
                .withDisk(disk)
                .withWalSegmentSize(SEGMENT)
                .withSystemIdentifier(7_000_000_000L);
    }

    static RunOptions run(NanoClock clock) {
        return RunOptions.defaults()
                .withSessions(8)
                .withWalBuffers(1 << 16)
                .withWalSize(8L << 20, 2L << 20)
                .withWorkers(RunOptions.Workers.BY_HAND)
                .withNanoClock(clock);
    }

    static ClusterOptions options(Disk disk, NanoClock clock) {
        return ClusterOptions.defaults().withDisk(disk).withSharedBuffers(64).withRun(run(clock));
    }

    static ControlFile control(Disk disk) {
        return ControlFile.read(disk, DATA.toString());
    }
}
