package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.DbState;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.recovery.Directories;
import org.pgkernel.testkit.SimulatedDisk;

/** A catalogue whose tables have other columns is not read as if they had ours (CLU-14). */
class CatalogVersionTest {
    private static final String VERSION = TestRun.DATA + "/base/5/pgk_version";

    private final SimulatedDisk disk = new SimulatedDisk(1);
    private final TestRun.HandClock clock = new TestRun.HandClock();

    @BeforeEach
    void create() {
        Cluster.create(TestRun.DATA, TestRun.create(disk));
    }

    private void assertRefused(String part) {
        RefusedException e =
                assertThrows(
                        RefusedException.class,
                        () -> Cluster.open(TestRun.DATA, TestRun.options(disk, clock)).close());
        assertTrue(e.getMessage().contains(part), e.getMessage());
        assertTrue(e.getMessage().contains("file=" + VERSION), e.getMessage());
        assertEquals(DbState.SHUTDOWNED, TestRun.control(disk).state(), "nothing was written");
        assertFalse(disk.exists(TestRun.DATA + "/postmaster.pid"));
        assertThrows(
                RefusedException.class,
                () -> Cluster.check(TestRun.DATA, TestRun.options(disk, clock)));
    }

    private void version(String text) {
        disk.unlink(VERSION);
        Directories.writeFile(disk, VERSION, text.getBytes(StandardCharsets.US_ASCII));
    }

    @Test
    void aClusterOfBeforeThereWereVersionsIsRefused() {
        disk.unlink(VERSION);
        assertRefused("an older version");
    }

    @Test
    void aClusterOfAnotherVersionIsRefused() {
        version("1\n");
        assertRefused("version 1");
        version("99\n");
        assertRefused("version 99");
        version("");
        assertRefused("no version that can be read");
        version("\u0001 rubbish\n");
        assertRefused("no version that can be read");
    }
}
