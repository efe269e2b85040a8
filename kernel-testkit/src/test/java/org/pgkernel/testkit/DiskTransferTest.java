package org.pgkernel.testkit;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.disk.PosixDisk;

class DiskTransferTest {
    @TempDir Path directory;

    @Test
    void aTreeComesBackAsItWas() throws Exception {
        Path source = Files.createDirectories(directory.resolve("source/base/5"));
        byte[] big = new byte[(1 << 20) + 8_193];
        new Random(1).nextBytes(big);
        Files.write(source.resolve("big"), big);
        Files.createFile(source.resolve("empty"));
        Files.write(directory.resolve("source/small"), new byte[] {1, 2, 3});
        SimulatedDisk disk = new SimulatedDisk(1);
        PosixDisk posix = new PosixDisk();

        DiskTransfer.copy(posix, directory + "/source", disk, "/data");
        assertEquals(Set.of("base", "small"), Set.copyOf(disk.list("/data")));
        assertArrayEquals(big, disk.content("/data/base/5/big"));
        assertEquals(0, disk.found(SimulatedDisk.LOSE_ALL).list("/").size(), "nothing is synced");
        disk.syncAll();

        SimulatedDisk found = disk.restart(SimulatedDisk.LOSE_ALL);
        DiskTransfer.copy(found, "/data", posix, directory + "/target");
        assertArrayEquals(big, Files.readAllBytes(directory.resolve("target/base/5/big")));
        assertEquals(0, Files.size(directory.resolve("target/base/5/empty")));
        assertArrayEquals(
                new byte[] {1, 2, 3}, Files.readAllBytes(directory.resolve("target/small")));
    }
}
