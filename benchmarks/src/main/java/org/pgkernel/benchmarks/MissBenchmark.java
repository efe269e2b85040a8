package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageChecksum;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.disk.NativeMemory;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.BufferPoolOptions;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;

/**
 * A page that is not in the pool, whose file is in the system's cache, evicting a clean page;
 * beside it the bare read of the same blocks in the same order, into one page of memory and into as
 * much memory as the pool has. One thread.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 250, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 8, time = 250, timeUnit = TimeUnit.MILLISECONDS)
@Fork(
        value = 3,
        jvmArgsAppend = {
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow"
        })
public class MissBenchmark {
    private static final int BUFFERS = 16_384;
    private static final int BLOCKS = 4 * BUFFERS;

    private Scratch scratch;
    private PosixDisk disk;
    private StorageManager smgr;
    private SmgrRelation relation;
    private BufferPool plain;
    private BufferPool checking;
    private DiskFile file;
    private long memory;
    private int next;
    private int slot;

    @Setup(Level.Trial)
    public void open() throws IOException {
        scratch = new Scratch();
        String directory = scratch.resolve("data").toString();
        Files.createDirectories(scratch.resolve("data").resolve("base").resolve("1"));
        disk = new PosixDisk();
        smgr =
                new StorageManager(
                        disk,
                        directory,
                        StorageManager.SEGMENT_BLOCKS,
                        SizePolicy.SHARED,
                        new SyncRequests(disk, directory));
        relation = smgr.open(RelFileLocator.DEFAULT_TABLESPACE, 1, 1000);
        relation.create(ForkNumber.MAIN, false);
        file = disk.open(directory + "/" + relation.locator().path(ForkNumber.MAIN));
        memory = NativeMemory.reserve((long) BUFFERS * Page.SIZE);
        UnsafeBuffer page = new UnsafeBuffer(memory, Page.SIZE);
        for (int block = 0; block < BLOCKS; block++) {
            Page.init(page, 0);
            page.putInt(4096, block);
            Page.setChecksum(page, 0);
            Page.setChecksum(page, PageChecksum.compute(page, block));
            file.write(memory, Page.SIZE, (long) block * Page.SIZE);
        }
        plain = pool(false);
        checking = pool(true);
    }

    private BufferPool pool(boolean checksums) {
        return BufferPool.open(
                BufferPoolOptions.of(BUFFERS).withChecksums(checksums), smgr, lsn -> {});
    }

    @TearDown(Level.Trial)
    public void close() {
        plain.close();
        checking.close();
        file.close();
        NativeMemory.release(memory, (long) BUFFERS * Page.SIZE);
        smgr.close();
        scratch.close();
    }

    private int step() {
        return next = next + 7919 & BLOCKS - 1;
    }

    /** What a read costs that does nothing else. */
    @Benchmark
    public int bareRead() {
        return file.read(memory, Page.SIZE, (long) step() * Page.SIZE);
    }

    /** The same into another page each time, as a pool has to. */
    @Benchmark
    public int bareReadIntoManyPages() {
        slot = slot + 1 & BUFFERS - 1;
        return file.read(memory + (long) slot * Page.SIZE, Page.SIZE, (long) step() * Page.SIZE);
    }

    @Benchmark
    public int miss() {
        return read(plain);
    }

    @Benchmark
    public int missWithChecksum() {
        return read(checking);
    }

    private int read(BufferPool pool) {
        int buffer = pool.read(relation, ForkNumber.MAIN, step(), ReadMode.NORMAL);
        pool.release(buffer);
        return buffer;
    }
}
