package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.smgr.SmgrRelation;

/** A hint that cannot be given costs nobody anything. */
@Timeout(60)
class WriteBackHintsTest {
    @TempDir Path directory;

    /** To give a hint the file may have to be opened again, which the system may refuse. */
    @Test
    void aHintThatCannotBeGivenFailsNobodyAndIsForgotten() {
        try (PoolFixture f = new PoolFixture(directory, false)) {
            f.pool(16, true, DropStrategy.FULL_SCAN);
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 8);
            int[] told = {0};
            WriteBackHints hints = new WriteBackHints(f.smgr, 2);
            f.disk.onWriteback =
                    (path, offset, length) -> {
                        throw new DiskException("could not open", path, DiskException.EIO);
                    };
            for (int block = 0; block < 5; block++) {
                hints.add(r.spcOid(), r.dbOid(), 1, 0, block);
            }
            f.disk.onWriteback = (path, offset, length) -> told[0]++;
            hints.add(r.spcOid(), r.dbOid(), 1, 0, 5);
            assertEquals(1, told[0], "one run: blocks 4 and 5; what failed is not tried again");
            hints.issue();
            assertEquals(1, told[0]);
        }
    }

    @Test
    void afterAFailureThatStopsTheKernelNothingIsKept() {
        try (PoolFixture f = new PoolFixture(directory, false)) {
            f.pool(16, true, DropStrategy.FULL_SCAN);
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 8);
            WriteBackHints hints = new WriteBackHints(f.smgr, 1);
            f.disk.onWriteback =
                    (path, offset, length) -> {
                        throw new KernelStoppedException("a close failed", null);
                    };
            for (int i = 0; i < 3; i++) {
                assertThrows(
                        KernelStoppedException.class,
                        () -> hints.add(r.spcOid(), r.dbOid(), 1, 0, 0));
            }
        }
    }
}
