package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.*;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.DbState;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.testkit.CrashSearch;
import org.pgkernel.testkit.SimulatedDisk;

class ClusterCreationTest {
    private final TestRun.HandClock clock = new TestRun.HandClock();

    @Test
    void aNewClusterIsShutDownAndCarriesWhatItWasMadeWith() {
        SimulatedDisk disk = new SimulatedDisk(1);
        Cluster.create(TestRun.DATA, TestRun.create(disk).withChecksums(false));
        ControlFile control = TestRun.control(disk);
        assertEquals(DbState.SHUTDOWNED, control.state());
        assertEquals(7_000_000_000L, control.systemIdentifier());
        assertEquals(TestRun.SEGMENT, control.xlogSegSize());
        assertFalse(control.checksumsEnabled());
        assertEquals(control.checkPoint(), control.checkPointRedo());
        assertEquals(3, control.checkPointNextXid());
        assertEquals(16384, control.checkPointNextOid());
    }

    @Test
    void aDirectoryThatHoldsSomethingIsLeftAlone() {
        SimulatedDisk disk = new SimulatedDisk(1);
        disk.directories("/data/mine");
        RefusedException e =
                assertThrows(
                        RefusedException.class,
                        () -> Cluster.create(TestRun.DATA, TestRun.create(disk)));
        assertTrue(e.getMessage().contains("/data"), e.getMessage());
        assertEquals(java.util.List.of("mine"), disk.list("/data"));
    }

    @Test
    void openedAndClosedItCanBeOpenedAgainWithoutRedo() {
        SimulatedDisk disk = new SimulatedDisk(1);
        Cluster.create(TestRun.DATA, TestRun.create(disk));
        for (int i = 0; i < 3; i++) {
            try (Cluster cluster = Cluster.open(TestRun.DATA, TestRun.options(disk, clock))) {
                assertEquals(0, cluster.report().records());
                assertEquals(DbState.IN_PRODUCTION, TestRun.control(disk).state());
            }
            assertEquals(DbState.SHUTDOWNED, TestRun.control(disk).state());
        }
    }

    @Test
    @DisplayName(
            "a crash while a cluster is created leaves one that is refused in words, or a whole one")
    void aCrashDuringCreationLeavesNothingOrEverything() {
        int runs =
                CrashSearch.of("cluster-create", new SimulatedDisk(1), () -> new CreationRun(clock))
                        .outcomes(2)
                        .run();
        assertTrue(runs > 100, "runs " + runs);
    }

    private static final class CreationRun implements CrashSearch.Run {
        private final TestRun.HandClock clock;
        private boolean created;

        CreationRun(TestRun.HandClock clock) {
            this.clock = clock;
        }

        @Override
        public void workload(SimulatedDisk disk) {
            Cluster.create(TestRun.DATA, TestRun.create(disk));
            created = true;
        }

        @Override
        public void verify(SimulatedDisk found) {
            try (Cluster cluster = Cluster.open(TestRun.DATA, TestRun.options(found, clock))) {
                cluster.checkpoint();
            } catch (KernelException e) {
                assertInstanceOf(RefusedException.class, e);
                assertFalse(created, "created, and lost: " + e.getMessage());
                assertTrue(
                        e.getMessage().contains("no such directory")
                                || e.getMessage().contains("not a PostgreSQL data directory"),
                        e.getMessage());
            }
        }
    }
}
