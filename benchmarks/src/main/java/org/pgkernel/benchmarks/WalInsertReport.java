package org.pgkernel.benchmarks;

import com.lmax.disruptor.BlockingWaitStrategy;
import com.lmax.disruptor.YieldingWaitStrategy;
import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicLongArray;
import org.agrona.BufferUtil;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.testkit.FileTrees;

/**
 * Measures WAL insertion: in memory, on a disk beside the plain writing of the same bytes, and
 * commits that share syncs. Ours and others take turns within one process.
 *
 * <pre>
 *  run CSV DISK      all samples; DISK is a directory on a real disk: three minutes
 *  report CSV MD     the tables
 * </pre>
 */
public final class WalInsertReport {
    private static final int ROUNDS = 10;
    private static final int WARMUP = 2;
    private static final long PASS_BYTES = 384L << 20;
    private static final String HEAD = "what,variant,threads,round,value,unit,ping_ns";

    private final List<String> lines = new ArrayList<>(List.of(HEAD));

    /** Between the processors, there and back, when the last round began. */
    private long pingNanos;

    private interface Opening {
        WalVariant open(Path directory);
    }

    private record Kind(String name, int threads, Opening opening) {}

    private WalInsertReport() {}

    public static void main(String[] args) throws IOException {
        if (args.length == 3 && args[0].equals("run")) {
            WalInsertReport report = new WalInsertReport();
            Path disk = Path.of(args[2]);
            report.machine();
            report.insertions(Path.of("/dev/shm"));
            report.diskPairs(disk, "100 bytes", 74);
            report.diskPairs(disk, "8 KiB", 8160);
            report.commits(disk);
            Files.write(Path.of(args[1]), report.lines);
        } else if (args.length == 3 && args[0].equals("report")) {
            Files.writeString(Path.of(args[2]), new WalInsertTables(Path.of(args[1])).text());
        } else {
            System.err.println("usage: WalInsertReport run CSV DISK | report CSV MD");
            System.exit(2);
        }
    }

    /** Tells where these samples were taken. */
    private void machine() {
        lines.add(
                String.format(
                        Locale.ROOT,
                        "%s,JDK %s,0,0,%d,processors,0",
                        WalInsertTables.MACHINE,
                        System.getProperty("java.runtime.version"),
                        Runtime.getRuntime().availableProcessors()));
    }

    private void insertions(Path memory) throws IOException {
        List<Kind> kinds = new ArrayList<>();
        for (int threads : new int[] {1, 2}) {
            kinds.add(new Kind("reservation", threads, d -> reservation(d)));
            kinds.add(
                    new Kind(
                            "disruptor",
                            threads,
                            d ->
                                    new DisruptorWal(
                                            new PosixDisk(),
                                            d,
                                            threads,
                                            new YieldingWaitStrategy())));
        }
        rounds("insert", "records/s", memory, kinds, false, 0.6);
    }

    private void commits(Path disk) throws IOException {
        List<Kind> kinds = new ArrayList<>();
        for (int threads : new int[] {1, 8}) {
            kinds.add(new Kind("reservation", threads, d -> reservation(d)));
            kinds.add(
                    new Kind("flusher", threads, d -> new WalVariant.Flusher(new PosixDisk(), d)));
            kinds.add(
                    new Kind(
                            "disruptor",
                            threads,
                            d ->
                                    new DisruptorWal(
                                            new PosixDisk(),
                                            d,
                                            threads,
                                            new BlockingWaitStrategy())));
        }
        rounds("commit", "commits/s", disk, kinds, true, 0.5);
    }

    private static WalVariant reservation(Path directory) {
        return new WalVariant.Reservation(new PosixDisk(), directory);
    }

    /** The kinds by turns, each round in a new directory. */
    private void rounds(
            String what, String unit, Path parent, List<Kind> kinds, boolean commit, double seconds)
            throws IOException {
        for (int round = -WARMUP; round < ROUNDS; round++) {
            for (Kind kind : kinds) {
                pingNanos = ping();
                Path directory = Files.createTempDirectory(parent, "pgkernel-wal-");
                try (WalVariant variant = kind.opening.open(directory)) {
                    long syncs = variant.syncs();
                    Rate rate = rate(variant, kind.threads, commit, seconds);
                    syncs = variant.syncs() - syncs;
                    if (round >= 0) {
                        sample(what, kind, round, rate.perSecond, unit);
                        sample(what, kind, round, rate.bytesPerCall, "B/op");
                        if (commit) {
                            sample(what, kind, round, rate.calls / (double) syncs, "commits/sync");
                        }
                    }
                } finally {
                    FileTrees.delete(directory);
                }
            }
        }
    }

    private record Rate(long calls, double perSecond, double bytesPerCall) {}

    private static volatile boolean running;

    private static Rate rate(WalVariant variant, int threads, boolean commit, double seconds) {
        long[] calls = new long[threads];
        long[] allocated = new long[threads];
        CyclicBarrier barrier = new CyclicBarrier(threads + 1);
        Thread[] all = new Thread[threads];
        ThreadMXBean bean = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        running = true;
        for (int i = 0; i < threads; i++) {
            int own = i;
            WalVariant.Backend backend = variant.backend();
            all[i] =
                    new Thread(
                            () -> {
                                backend.commit(); // whatever the first call brings into being
                                await(barrier);
                                long before = bean.getCurrentThreadAllocatedBytes();
                                calls[own] = commit ? commits(backend) : inserts(backend);
                                allocated[own] = bean.getCurrentThreadAllocatedBytes() - before;
                            });
            all[i].start();
        }
        await(barrier);
        long begin = System.nanoTime();
        sleep((long) (seconds * 1000));
        running = false;
        long sum = 0;
        long bytes = 0;
        for (int i = 0; i < threads; i++) {
            Joining.join(all[i]);
            sum += calls[i];
            bytes += allocated[i];
        }
        double elapsed = (System.nanoTime() - begin) / 1e9;
        return new Rate(sum, sum / elapsed, bytes / (double) sum);
    }

    private static long inserts(WalVariant.Backend backend) {
        long count = 0;
        while (running) {
            for (int i = 0; i < 256; i++) {
                backend.insert();
            }
            count += 256;
        }
        return count;
    }

    private static long commits(WalVariant.Backend backend) {
        long count = 0;
        while (running) {
            backend.commit();
            count++;
        }
        return count;
    }

    /**
     * Two threads insert until so many bytes are durable, into recycled segments; then the same
     * calls are made again plainly, on other files that are there already. Before or after both, by
     * turns, two threads insert as much on a disk that costs nothing.
     */
    private void diskPairs(Path parent, String record, int dataLength) throws IOException {
        Path directory = Files.createTempDirectory(parent, "pgkernel-wal-");
        Path plain = Files.createDirectory(directory.resolve("plain"));
        Kind kind = new Kind("insertion of " + record, 2, null);
        Kind other = new Kind("plain beside " + record, 1, null);
        Kind free = new Kind("ceiling for " + record, 2, null);
        try (Pass disk = new Pass(new PosixDisk(), directory, "disk", dataLength);
                Pass nothing =
                        new Pass(new FreeDisk(new PosixDisk()), directory, "free", dataLength)) {
            for (int round = -WARMUP; round < ROUNDS; round++) {
                pingNanos = ping();
                boolean ceilingFirst = round % 2 != 0;
                double ceiling = ceilingFirst ? nothing.insert() : 0;
                double ours = disk.insert();
                double plainly = disk.plainly(plain);
                ceiling = ceilingFirst ? ceiling : nothing.insert();
                if (round >= 0) {
                    sample("disk", kind, round, ours, "MB/s");
                    sample("disk", other, round, plainly, "MB/s");
                    sample("disk", free, round, ceiling, "MB/s");
                    sample("disk", kind, round, ours / plainly, "of plain");
                    sample("disk", free, round, ceiling / plainly, "of plain");
                    sample("disk", kind, round, ours / ceiling, "of ceiling");
                    sample("disk", kind, round, disk.trace.count(true), "syncs");
                    sample("disk", kind, round, disk.trace.count(false), "writes");
                }
            }
        } finally {
            FileTrees.delete(directory);
        }
    }

    /** A log that takes so many bytes a pass. Results in MB/s, of what was written. */
    private static final class Pass implements AutoCloseable {
        final DiskTrace trace;
        private final WalVariant.Reservation log;
        private final int dataLength;
        private final ByteBuffer bytes = ByteBuffer.allocateDirect(WalVariant.RING);

        Pass(Disk disk, Path parent, String name, int dataLength) throws IOException {
            trace = new DiskTrace(disk);
            log = new WalVariant.Reservation(trace, Files.createDirectory(parent.resolve(name)));
            this.dataLength = dataLength;
            for (int i = 0; i < bytes.capacity(); i += 8) {
                bytes.putLong(i, i * 0x9E3779B97F4A7C15L);
            }
        }

        double insert() {
            long end = log.inserter.flushedLsn();
            int ahead = (int) (PASS_BYTES / WalVariant.SEGMENT) + 3;
            log.inserter.segments().removeBefore(end, end, ahead);
            trace.clear();
            long nanos = insertUntil(log, end + PASS_BYTES, dataLength);
            return trace.bytes() * 1e3 / nanos;
        }

        /** The writes and syncs of the last insertion again. */
        double plainly(Path directory) {
            for (int i = 0; i < trace.files(); i++) {
                makeFile(directory.resolve("" + i), bytes);
            }
            return trace.bytes() * 1e3 / trace.repeat(new PosixDisk(), directory, bytes);
        }

        @Override
        public void close() {
            log.close();
        }
    }

    private static long insertUntil(WalVariant.Reservation ours, long end, int dataLength) {
        long begin = System.nanoTime();
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            WalVariant.Backend backend = ours.backend();
            backend.dataLength = dataLength;
            threads[i] =
                    new Thread(
                            () -> {
                                while (ours.inserter.insertLsn() < end) {
                                    for (int k = 0; k < 16; k++) {
                                        backend.insert();
                                    }
                                }
                            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            Joining.join(thread);
        }
        ours.inserter.flush(ours.inserter.insertLsn());
        return System.nanoTime() - begin;
    }

    private static void makeFile(Path path, ByteBuffer bytes) {
        if (!Files.exists(path)) {
            try (var file = new PosixDisk().create(path.toString())) {
                file.write(BufferUtil.address(bytes), WalVariant.SEGMENT, 0);
                file.sync();
            }
        }
    }

    /** How far the two processors are apart: a word sent there and back. */
    private static long ping() {
        int there = 32;
        int times = 50_000;
        AtomicLongArray word = new AtomicLongArray(2 * there);
        Thread other =
                new Thread(
                        () -> {
                            for (long i = 1; i < 2L * times; i += 2) {
                                while (word.get(there) != i) {
                                    Thread.onSpinWait();
                                }
                                word.set(there, i + 1);
                            }
                        });
        other.start();
        long begin = System.nanoTime();
        for (long i = 0; i < 2L * times; i += 2) {
            while (word.get(there) != i) {
                Thread.onSpinWait();
            }
            word.set(there, i + 1);
        }
        Joining.join(other);
        return (System.nanoTime() - begin) / times;
    }

    private void sample(String what, Kind kind, int round, double value, String unit) {
        String line =
                String.format(
                        Locale.ROOT,
                        "%s,%s,%d,%d,%.4f,%s,%d",
                        what,
                        kind.name,
                        kind.threads,
                        round,
                        value,
                        unit,
                        pingNanos);
        System.out.println(line);
        lines.add(line);
    }

    private static void await(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (InterruptedException | BrokenBarrierException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
