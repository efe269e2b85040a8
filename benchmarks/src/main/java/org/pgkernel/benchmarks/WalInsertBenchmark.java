package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.UnsafeBuffer;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.annotations.Warmup;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.testkit.FileTrees;
import org.pgkernel.wal.WalInserter;
import org.pgkernel.wal.WalRecordBuilder;

/**
 * WAL insertion in the complete format, records of 100 bytes, into segments of 16 MiB: without
 * commits from one and two threads, and with a commit after each from one and eight. The segments
 * are below {@code directory}. Old ones are recycled on the way, as a checkpoint would.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(
        value = 1,
        jvmArgsAppend = {
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow"
        })
public class WalInsertBenchmark {
    private static final int SEGMENT = 16 << 20;

    /** Where the segments are made: memory, or {@code -p directory=} a place on a disk. */
    @Param("/dev/shm")
    public String directory;

    private Path path;
    private WalInserter inserter;
    private Thread walWriter;
    private volatile boolean closing;
    private long syncsBefore;

    /** A record of 100 bytes in all, as each thread builds it anew. */
    @State(Scope.Thread)
    public static class Backend {
        final WalRecordBuilder builder = new WalRecordBuilder();
        final UnsafeBuffer data = new UnsafeBuffer(new byte[74]);

        WalRecordBuilder record() {
            return builder.begin(10, 0, 700).data(data, 0, 74);
        }
    }

    @Setup(Level.Trial)
    public void open() throws IOException {
        path = Files.createTempDirectory(Path.of(directory), "pgkernel-jmh-wal-");
        inserter =
                new WalInserter(
                        new PosixDisk(),
                        path.toString(),
                        1,
                        SEGMENT,
                        7,
                        SEGMENT + 40,
                        0,
                        0,
                        0,
                        16 << 20);
        walWriter = new Thread(this::write, "wal-writer");
        walWriter.start();
    }

    /** WAL writer and checkpointer in one. */
    private void write() {
        long kept = 0;
        while (!closing) {
            if (inserter.doWork() == 0) {
                LockSupport.parkNanos(50_000);
            }
            if (inserter.flushedLsn() - kept > 4L * SEGMENT) {
                kept = inserter.flushedLsn();
                inserter.segments().removeBefore(kept, kept, 8);
            }
        }
    }

    @Setup(Level.Iteration)
    public void begin() {
        syncsBefore = inserter.syncs();
    }

    @TearDown(Level.Iteration)
    public void tellSyncs() {
        System.out.print("syncs " + (inserter.syncs() - syncsBefore) + "  ");
    }

    @TearDown(Level.Trial)
    public void close() throws IOException, InterruptedException {
        closing = true;
        walWriter.join();
        inserter.close();
        FileTrees.delete(path);
    }

    @Benchmark
    @Threads(1)
    public long insertOneThread(Backend backend) {
        return inserter.insert(backend.record());
    }

    @Benchmark
    @Threads(2)
    public long insertTwoThreads(Backend backend) {
        return inserter.insert(backend.record());
    }

    @Benchmark
    @Threads(1)
    public void commitOneThread(Backend backend) {
        inserter.flush(inserter.insert(backend.record()));
    }

    @Benchmark
    @Threads(8)
    public void commitEightThreads(Backend backend) {
        inserter.flush(inserter.insert(backend.record()));
    }
}
