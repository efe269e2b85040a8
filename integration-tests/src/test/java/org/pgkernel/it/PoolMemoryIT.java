package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;
import org.pgkernel.testkit.WorkDirectory;

/** What a pool takes of the machine is what is used of it. */
class PoolMemoryIT {
    private static final int HUNDRED_GIGABYTES = 13_107_200;
    private static final long GIB = 1L << 30;

    @Test
    void aPoolOf100GbHoldsAWorkingSetOf1GbInUnder1500Mb() throws IOException {
        try (WorkDirectory work = WorkDirectory.create("pool-memory")) {
            Path database = Files.createDirectories(work.resolve("base").resolve("1"));
            // One sparse segment: pages of zeros, which are valid.
            try (RandomAccessFile file =
                    new RandomAccessFile(database.resolve("1000").toFile(), "rw")) {
                file.setLength(GIB);
            }
            PosixDisk disk = new PosixDisk();
            String directory = work.path().toString();
            try (StorageManager smgr =
                            new StorageManager(
                                    disk,
                                    directory,
                                    StorageManager.SEGMENT_BLOCKS,
                                    SizePolicy.SHARED,
                                    new SyncRequests(disk, directory));
                    BufferPool pool =
                            BufferPool.open(
                                    HUNDRED_GIGABYTES,
                                    smgr,
                                    lsn -> {},
                                    true,
                                    DropStrategy.LOOKUP)) {
                long before = residentBytes();
                SmgrRelation relation = smgr.open(RelFileLocator.DEFAULT_TABLESPACE, 1, 1000);
                int blocks = (int) (GIB / Page.SIZE);
                for (int block = 0; block < blocks; block++) {
                    pool.release(pool.read(relation, ForkNumber.MAIN, block, ReadMode.NORMAL));
                }
                long grown = residentBytes() - before;
                assertTrue(grown >= GIB, "the working set is resident: grown by " + grown);
                assertTrue(
                        residentBytes() < 1500 * 1000 * 1000L,
                        "resident in all: " + residentBytes());
            }
        }
    }

    /** This process, JVM included. */
    private static long residentBytes() throws IOException {
        return Files.readAllLines(Path.of("/proc/self/status")).stream()
                        .filter(line -> line.startsWith("VmRSS:"))
                        .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
                        .findFirst()
                        .orElseThrow()
                * 1024;
    }
}
