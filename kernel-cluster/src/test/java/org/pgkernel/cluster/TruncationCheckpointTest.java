package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.fsm.FreeSpaceMap;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.HeapBackend;
import org.pgkernel.heap.HeapDeleter;
import org.pgkernel.heap.HeapInserter;
import org.pgkernel.heap.HeapRelation;
import org.pgkernel.heap.RelationHistory;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TableVacuum;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.heap.TupleId;
import org.pgkernel.heap.TupleOutcome;
import org.pgkernel.heap.VacuumListener;
import org.pgkernel.heap.VacuumOptions;
import org.pgkernel.heap.VacuumResult;
import org.pgkernel.testkit.ForwardingDisk;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.xact.TransactionSession;

/** A vacuum cuts a file while a checkpoint is under way. */
final class TruncationCheckpointTest {
    private static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(Attribute.of("id", "int4"), Attribute.of("word", "text"));
    private static final String WORD = "w".repeat(700);
    private static final int ROWS_A_PAGE = 11;
    private static final int PAGES = 8;

    private final SimulatedDisk medium = new SimulatedDisk(3);
    private final TestRun.HandClock clock = new TestRun.HandClock();
    private Runnable beforeCut = () -> {};
    private Cluster cluster;
    private HeapRelation heap;
    private HeapBackend backend;
    private BackendBuffers buffers;
    private TransactionSession session;
    private TableVacuum vacuum;

    /** What the disk would hold after a crash, each time that somebody wanted to know. */
    private final List<SimulatedDisk> crashes = new ArrayList<>();

    /** Lets the test step in before a table's file is cut. */
    private final class StoppingDisk extends ForwardingDisk {
        StoppingDisk(Disk disk) {
            super(disk);
        }

        @Override
        protected DiskFile opened(DiskFile file) {
            return (DiskFile)
                    Proxy.newProxyInstance(
                            DiskFile.class.getClassLoader(),
                            new Class<?>[] {DiskFile.class},
                            (proxy, method, arguments) -> {
                                boolean cut = method.getName().equals("truncate");
                                if (cut && file.path().contains("/base/")) {
                                    beforeCut.run();
                                }
                                try {
                                    return method.invoke(file, arguments);
                                } catch (InvocationTargetException e) {
                                    throw e.getCause();
                                }
                            });
        }
    }

    @BeforeEach
    void open() {
        Cluster.create(TestRun.DATA, TestRun.create(medium));
        cluster = Cluster.open(TestRun.DATA, TestRun.options(new StoppingDisk(medium), clock));
        try (Backend creator = cluster.newBackend()) {
            creator.begin();
            creator.createTable("t", COLUMNS, TableOptions.DEFAULT);
            creator.commit();
            creator.begin();
            heap = creator.table("t").forReading();
            creator.commit();
        }
        Kernel kernel = cluster.kernelForTests();
        session = kernel.transactions.openSession(ClusterCreation.DATABASE);
        buffers = kernel.pool.backend("test");
        backend =
                new HeapBackend(
                        kernel.heap,
                        buffers,
                        session,
                        ClusterCreation.DATABASE,
                        new FreeSpaceMap());
        vacuum =
                new TableVacuum(
                        backend, kernel.primary.checkpointDelay(), kernel.options.lockParking());
    }

    @AfterEach
    void close() {
        session.close();
        buffers.close();
        cluster.abandon();
    }

    private List<Long> insert(int from, int count) {
        HeapInserter inserter = new HeapInserter(backend);
        RowValues row = new RowValues(COLUMNS);
        List<Long> tids = new ArrayList<>();
        session.begin();
        for (int i = from; i < from + count; i++) {
            row.clear();
            row.setNumber(0, i);
            row.setText(1, WORD);
            tids.add(inserter.insert(heap, row));
        }
        session.commit(true);
        backend.endTransaction();
        return tids;
    }

    private void delete(List<Long> tids) {
        HeapDeleter deleter = new HeapDeleter(backend);
        session.begin();
        for (long tid : tids) {
            assertEquals(TupleOutcome.OK, deleter.delete(heap, tid, false));
        }
        session.commit(true);
        backend.endTransaction();
    }

    private VacuumResult vacuum(boolean truncate) {
        TableVacuum.Catalogue catalogue =
                new TableVacuum.Catalogue() {
                    @Override
                    public RelationHistory history(HeapRelation relation) {
                        return new RelationHistory(3, 1, 0, -1);
                    }

                    @Override
                    public void vacuumed(HeapRelation relation, VacuumResult result) {}
                };
        return vacuum.vacuum(
                heap, VacuumOptions.DEFAULT.withTruncate(truncate), catalogue, VacuumListener.NONE);
    }

    private Checkpointer checkpointer() {
        return cluster.kernelForTests().checkpointer;
    }

    private void doCheckpointWork(int steps) {
        for (int i = 0; i < steps; i++) {
            checkpointer().doWork();
            clock.pass(1, TimeUnit.SECONDS);
        }
    }

    private long completed() {
        return TestRun.control(medium).checkPoint();
    }

    private int blocks() {
        return heap.storage().nblocks(ForkNumber.MAIN);
    }

    private void crashHere() {
        crashes.add(medium.found(SimulatedDisk.LOSE_ALL));
        crashes.add(medium.found(SimulatedDisk.KEEP_ALL));
        crashes.add(medium.found(100 + crashes.size()));
    }

    private void recoverAll() {
        assertTrue(crashes.size() >= 6);
        for (SimulatedDisk found : crashes) {
            Cluster after = Cluster.open(TestRun.DATA, TestRun.options(found, clock));
            try (Backend reader = after.newBackend()) {
                reader.begin();
                Table table = reader.table("t");
                TreeSet<Long> ids = new TreeSet<>();
                RowValues row = table.newRow();
                try (TableScan scan = table.scan()) {
                    while (scan.next()) {
                        scan.read(row);
                        ids.add(row.number(0));
                    }
                }
                int size = table.forReading().storage().nblocks(ForkNumber.MAIN);
                reader.commit();
                assertEquals(PAGES * ROWS_A_PAGE, ids.size());
                assertEquals(PAGES * ROWS_A_PAGE - 1, ids.last());
                assertTrue(size == PAGES || size == PAGES + 1, "blocks " + size);
            }
            after.abandon();
        }
    }

    /** The last block is empty, in the pool and on the disk. */
    private void fillAllButTheLastBlock() {
        List<Long> tids = insert(0, (PAGES + 1) * ROWS_A_PAGE);
        delete(tids.subList(PAGES * ROWS_A_PAGE, tids.size()));
        vacuum(false);
        assertEquals(PAGES + 1, blocks());
        cluster.checkpoint();
    }

    @Test
    @DisplayName("C03 a checkpoint does not complete between thrown-away buffers and the cut file")
    void aCheckpointDoesNotCompleteInBetween() {
        fillAllButTheLastBlock();
        List<Long> late = insert(1000, 1);
        assertEquals(PAGES, TupleId.block(late.getFirst()));
        long before = completed();
        checkpointer().request();
        doCheckpointWork(1); // the redo point is fixed here: behind the row, before its deletion
        delete(late);
        beforeCut =
                () -> {
                    doCheckpointWork(500);
                    assertEquals(before, completed(), "the file is not cut yet");
                    assertTrue(checkpointer().isAtWork());
                    crashHere();
                };
        assertEquals(1, vacuum(true).removedPages());
        assertEquals(PAGES, blocks());
        for (int i = 0; i < 1000 && checkpointer().isAtWork(); i++) {
            doCheckpointWork(1);
            if (i % 5 == 0) {
                crashHere();
            }
        }
        assertFalse(checkpointer().isAtWork());
        assertNotEquals(before, completed());
        crashHere();
        recoverAll();
    }

    @Test
    @DisplayName("C03 a checkpoint whose redo point is behind the record syncs the cut file")
    void aCheckpointBehindTheRecordSyncsTheFile() {
        fillAllButTheLastBlock();
        long before = completed();
        beforeCut =
                () -> {
                    beforeCut = () -> {};
                    checkpointer().request();
                    doCheckpointWork(500);
                    assertEquals(before, completed(), "the file is not cut yet");
                    crashHere();
                };
        assertEquals(1, vacuum(true).removedPages());
        for (int i = 0; i < 1000 && checkpointer().isAtWork(); i++) {
            doCheckpointWork(1);
        }
        assertNotEquals(before, completed());
        SimulatedDisk found = medium.found(SimulatedDisk.LOSE_ALL);
        String path = TestRun.DATA + "/" + heap.storage().path(ForkNumber.MAIN);
        assertEquals(PAGES * Page.SIZE, found.content(path).length, "redo will not do it again");
        crashHere();
        recoverAll();
    }
}
