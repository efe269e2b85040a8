package org.pgkernel.it.crash;

import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import org.agrona.concurrent.NanoClock;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.cluster.Backend;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.cluster.CreateOptions;
import org.pgkernel.cluster.RunOptions;
import org.pgkernel.cluster.Table;
import org.pgkernel.cluster.TableScan;
import org.pgkernel.heap.RowValues;
import org.pgkernel.it.sql.KernelSql;
import org.pgkernel.it.sql.SqlEngine;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.testkit.SimulatedDisk;

/** A small kernel over a simulated disk, all in the caller's thread: its workers, its clock. */
final class MatrixKernel implements AutoCloseable {
    private static final int SEGMENT = 1 << 20;
    private static final int RELFILENUMBER = 2;

    /**
     * What the kernel runs with.
     *
     * @param data the directory; another one for each seed, since a process opens one but once
     * @param buffers of the pool
     */
    record Settings(
            String data,
            int buffers,
            boolean checksums,
            boolean fullPageWrites,
            DropStrategy strategy) {
        static Settings of(long seed) {
            DropStrategy[] strategies = DropStrategy.values();
            return new Settings(
                    "/data" + seed,
                    seed % 3 == 0 ? 96 : 24,
                    seed % 2 == 0,
                    true,
                    strategies[(int) Math.floorMod(seed, (long) strategies.length)]);
        }

        Settings withoutFullPageWrites() {
            return new Settings(data, buffers, checksums, false, strategy);
        }
    }

    private final Settings settings;
    private final SimulatedDisk disk;
    private Cluster cluster;
    private SqlEngine sql;
    private long now = 1;

    private MatrixKernel(SimulatedDisk disk, Settings settings) {
        this.disk = disk;
        this.settings = settings;
    }

    static void create(SimulatedDisk disk, Settings settings) {
        Cluster.create(
                Path.of(settings.data),
                CreateOptions.defaults()
                        .withDisk(disk)
                        .withWalSegmentSize(SEGMENT)
                        .withChecksums(settings.checksums)
                        .withSystemIdentifier(7_000_000_000L));
    }

    /** Recovers if need be. */
    static MatrixKernel open(SimulatedDisk disk, Settings settings) {
        MatrixKernel kernel = new MatrixKernel(disk, settings);
        kernel.open();
        return kernel;
    }

    private void open() {
        NanoClock clock = () -> now;
        try {
            cluster =
                    Cluster.open(
                            Path.of(settings.data),
                            ClusterOptions.defaults()
                                    .withDisk(disk)
                                    .withSharedBuffers(settings.buffers)
                                    .withDropStrategy(settings.strategy)
                                    .withSizePolicy(SizePolicy.SHARED)
                                    .withFullPageWrites(settings.fullPageWrites)
                                    .withRun(
                                            RunOptions.defaults()
                                                    .withSessions(4)
                                                    .withWalBuffers(1 << 16)
                                                    .withWalSize(3L << 20, 1L << 20)
                                                    .withWorkers(RunOptions.Workers.BY_HAND)
                                                    .withNanoClock(clock)));
        } catch (DiskException e) {
            // The disk failed before there was a kernel that could stop: nothing was promised.
            throw new KernelStoppedException("not opened: " + e.getMessage(), e);
        }
        try {
            sql = new KernelSql(cluster);
        } catch (RuntimeException | Error e) {
            cluster.abandon();
            throw e;
        }
    }

    SqlEngine sql() {
        return sql;
    }

    /**
     * Names of the files, main forks, of all tables and TOAST tables, read outside transactions.
     */
    Set<String> tableFiles() {
        Set<String> files = new TreeSet<>();
        try (Backend backend = cluster.newBackend()) {
            backend.begin();
            Table classes = backend.table("pgk_class");
            RowValues row = classes.newRow();
            try (TableScan scan = classes.scan()) {
                while (scan.next()) {
                    scan.read(row);
                    files.add(Long.toString(row.number(RELFILENUMBER)));
                }
            }
            backend.commit();
        }
        return files;
    }

    void checkpoint() {
        cluster.checkpoint();
    }

    void work(Step.Work work) {
        for (int i = 0; i < work.times(); i++) {
            now += work.nanos();
            cluster.doWork();
        }
    }

    void reopen() {
        close();
        open();
    }

    /** As a crash leaves it; memory is given back. */
    void abandon() {
        try {
            cluster.abandon();
        } catch (RuntimeException | Error e) {
            // The disk has crashed, or the kernel has stopped.
        }
    }

    @Override
    public void close() {
        sql.close();
        cluster.close();
    }
}
