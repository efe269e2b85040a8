package org.pgkernel.recovery;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.DbState;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.wal.WalReader;

/**
 * A data directory made by hand: a checkpoint, its control file, and what the test appends to the
 * WAL.
 */
final class TestCluster implements AutoCloseable {
    final Disk disk = new PosixDisk();
    final Path dir;
    final TestWal wal;
    final FakeCounters counters = new FakeCounters();
    final TinyHeap heap = new TinyHeap();
    final List<String> calls = new ArrayList<>();
    long checkpointLsn;

    /** Of the cluster that is made next. */
    boolean checksums;

    TestCluster(Path dir) throws IOException {
        this.dir = dir;
        Files.createDirectories(dir.resolve("base/5"));
        Files.createDirectories(dir.resolve("global"));
        wal = new TestWal(disk, dir);
    }

    /** A shutdown checkpoint here; the control file says {@code state}. */
    TestCluster shutdownCheckpoint(DbState state) {
        return checkpoint(XlogRedo.CHECKPOINT_SHUTDOWN, wal.writer.nextRecordLsn(), state);
    }

    TestCluster checkpoint(int info, long redo, DbState state) {
        checkpointLsn = wal.checkpoint(info, redo, 700, 16384);
        wal.writer.flush();
        ControlFile control = new ControlFile();
        control.setSystemIdentifier(TestWal.SYSTEM);
        control.setXlogSegSize(TestWal.SEGMENT);
        control.setState(state);
        control.setCheckPoint(checkpointLsn);
        control.setDataChecksumVersion(checksums ? 1 : 0);
        control.setWalLevel(ControlFile.WAL_LEVEL_REPLICA);
        control.setUnloggedLsn(1000);
        try (WalReader reader = wal.reader(checkpointLsn)) {
            control.setCheckPointCopy(reader.next().data(), 0);
        }
        control.create(disk, dir.toString(), Clock.systemUTC());
        return this;
    }

    ControlFile control() {
        return ControlFile.read(disk, dir.toString());
    }

    Recovery open(Recovery.Mode mode) {
        wal.writer.flush();
        return Recovery.open(disk, dir.toString(), mode, options(ReplayListener.NONE), providers());
    }

    static RecoveryOptions options(ReplayListener listener) {
        return new RecoveryOptions(
                64,
                DropStrategy.LOOKUP,
                SizePolicy.RECOVERY_ONLY,
                null,
                listener,
                Clock.systemUTC());
    }

    /** Recovery's own managers, TinyHeap, and no-ops for the rest; calls are recorded. */
    List<RecoveryModuleProvider> providers() {
        return List.of(
                new CoreRecoveryModuleProvider(),
                new RecoveryModuleProvider() {
                    @Override
                    public String name() {
                        return "test";
                    }

                    @Override
                    public RecoveryModule create(RecoveryEnvironment environment) {
                        return new TestModule();
                    }
                });
    }

    private final class TestModule implements RecoveryModule {
        @Override
        public List<ResourceManager> resourceManagers() {
            List<ResourceManager> all = new ArrayList<>();
            List<Integer> core =
                    List.of(
                            RmgrIds.XLOG,
                            RmgrIds.DATABASE,
                            RmgrIds.TABLESPACE,
                            RmgrIds.RELMAP,
                            RmgrIds.REPLICATION_ORIGIN,
                            RmgrIds.LOGICAL_MESSAGE,
                            RmgrIds.HEAP);
            for (int i = 0; i < RmgrIds.COUNT; i++) {
                if (!core.contains(i)) {
                    all.add(new NoOp(i));
                }
            }
            all.add(heap);
            return all;
        }

        @Override
        public RecoveredCounters counters() {
            return counters;
        }

        @Override
        public void beforeRedo(RedoContext context) {
            calls.add("beforeRedo");
        }

        @Override
        public void afterRedo(RedoContext context) {
            calls.add("afterRedo");
        }

        @Override
        public void afterRecovery(RedoContext context) {
            calls.add("afterRecovery");
        }

        @Override
        public List<CheckpointParticipant> checkpointParticipants() {
            return List.of(
                    participant(CheckpointParticipant.Order.TWO_PHASE),
                    participant(CheckpointParticipant.Order.SLRU));
        }

        private CheckpointParticipant participant(CheckpointParticipant.Order order) {
            return new CheckpointParticipant() {
                @Override
                public Order order() {
                    return order;
                }

                @Override
                public String name() {
                    return order.toString();
                }

                @Override
                public void checkpoint(long redoLsn) {
                    calls.add("checkpoint " + order);
                }
            };
        }
    }

    /** Covers everything, does nothing. */
    record NoOp(int id) implements ResourceManager {
        @Override
        public String name() {
            return RmgrIds.name(id);
        }

        @Override
        public String identify(int info) {
            return "NOOP";
        }

        @Override
        public boolean covers(int info) {
            return true;
        }

        @Override
        public void redo(org.pgkernel.wal.WalRecord record, RedoContext context) {}
    }

    /** The count on a page of the relation's file. */
    int countInFile(int rel, int block) throws IOException {
        byte[] file = Files.readAllBytes(dir.resolve("base/5/" + rel));
        return new UnsafeBuffer(file).getInt(block * 8192 + TinyHeap.COUNT);
    }

    @Override
    public void close() {
        wal.close();
    }
}
