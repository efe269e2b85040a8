package org.pgkernel.bufmgr;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageVerify;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.testkit.ForwardingDisk;
import org.pgkernel.testkit.SimulatedDisk;

/**
 * Looks at every page on its way to a {@link SimulatedDisk}: is its WAL durable, its checksum
 * right, does it belong there, is it newer than what is there. Spoils some pages on their way back,
 * for threads that said they would bear it. Which faults a thread met is counted for it.
 */
final class StressDisk extends ForwardingDisk {
    private record Owner(StressRelation relation, int fork) {}

    final SimulatedDisk simulated;
    final LongAdder pagesWritten = new LongAdder();
    final LongAdder faultsMet = new LongAdder();

    private final int segmentBlocks;
    private final boolean checksums;
    private final StressWal wal;
    private final Consumer<Throwable> failed;

    /** By the path of the fork's first segment. Changed by who holds the relation exclusively. */
    private final Map<String, Owner> owners = new ConcurrentHashMap<>();

    private final ThreadLocal<int[]> faults = ThreadLocal.withInitial(() -> new int[1]);
    private final ThreadLocal<boolean[]> bearsDamage =
            ThreadLocal.withInitial(() -> new boolean[1]);

    StressDisk(
            SimulatedDisk disk,
            int segmentBlocks,
            boolean checksums,
            StressWal wal,
            Consumer<Throwable> failed) {
        super(disk);
        this.simulated = disk;
        this.segmentBlocks = segmentBlocks;
        this.checksums = checksums;
        this.wal = wal;
        this.failed = failed;
    }

    void owns(String path, StressRelation relation, int fork) {
        owners.put(path, new Owner(relation, fork));
    }

    /** No page of the file may be written any more. */
    void disown(String path) {
        owners.remove(path);
    }

    /** Faults that the calling thread has met so far. */
    int faults() {
        return faults.get()[0];
    }

    /** Whether pages that the calling thread reads may be spoilt. */
    void bearsDamage(boolean bears) {
        bearsDamage.get()[0] = bears && checksums;
    }

    private void met() {
        faults.get()[0]++;
        faultsMet.increment();
    }

    @Override
    protected DiskFile opened(DiskFile file) {
        return new StressFile(file);
    }

    private final class StressFile extends ForwardingDisk.ForwardingFile {
        private final String first;
        private final int segment;

        StressFile(DiskFile file) {
            super(file);
            String path = file.path();
            int dot = path.indexOf('.', path.lastIndexOf('/'));
            first = dot < 0 ? path : path.substring(0, dot);
            segment = dot < 0 ? 0 : Integer.parseInt(path.substring(dot + 1));
        }

        @Override
        public int read(long address, int length, long offset) {
            int got;
            try {
                got = super.read(address, length, offset);
            } catch (DiskException e) {
                met();
                throw e;
            }
            if (got < length && offset + length <= size()) {
                met();
            } else if (bearsDamage.get()[0] && ThreadLocalRandom.current().nextInt(300) == 0) {
                UnsafeBuffer page = new UnsafeBuffer(address, length);
                int at = ThreadLocalRandom.current().nextInt(Page.HEADER_SIZE, length);
                page.putByte(at, (byte) ~page.getByte(at));
                met();
            }
            return got;
        }

        @Override
        public void write(long address, int length, long offset) {
            Owner owner = owners.get(first);
            boolean pages = false;
            try {
                for (int at = 0; at < length; at += Page.SIZE) {
                    pages |= check(owner, address + at, block(offset + at));
                }
            } catch (AssertionError e) {
                failed.accept(e);
                throw e;
            }
            if (ThreadLocalRandom.current().nextInt(8) == 0) {
                Thread.yield(); // let others come in between
            }
            try {
                super.write(address, length, offset);
            } catch (DiskException e) {
                met();
                throw e;
            }
            if (pages) {
                pagesWritten.increment();
                UnsafeBuffer page = new UnsafeBuffer(address, Page.SIZE);
                owner.relation.wasWritten(page, owner.fork, block(offset));
            }
        }

        private int block(long offset) {
            return segment * segmentBlocks + (int) (offset / Page.SIZE);
        }

        /**
         * @return true for a page, false for zeros
         */
        private boolean check(Owner owner, long address, int block) {
            UnsafeBuffer page = new UnsafeBuffer(address, Page.SIZE);
            String what;
            if (owner == null) {
                what = "a page of a file that is gone";
            } else if (Page.lsn(page) > wal.durable()) {
                what = "WAL is durable up to " + wal.durable() + " and the page's not";
            } else if (!PageVerify.isValid(page, block, checksums)) {
                what = PageVerify.whyInvalid(page, block, checksums);
            } else {
                what = owner.relation.whyNotWritten(page, owner.fork, block);
            }
            if (what != null) {
                throw new AssertionError(
                        "written: "
                                + what
                                + " file="
                                + path()
                                + " block="
                                + block
                                + " lsn="
                                + Page.lsn(page));
            }
            return !PageVerify.isAllZero(page);
        }
    }
}
