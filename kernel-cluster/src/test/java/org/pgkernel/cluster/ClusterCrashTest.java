package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.heap.RowValues;
import org.pgkernel.testkit.CrashSearch;
import org.pgkernel.testkit.SimulatedDisk;

/** Tables made, filled, truncated and dropped around checkpoints, crashed anywhere. */
class ClusterCrashTest {
    @Test
    void whatWasCommittedIsThereAndNothingElse() {
        SimulatedDisk template = new SimulatedDisk(1);
        Cluster.create(TestRun.DATA, TestRun.create(template));
        try (Cluster first =
                Cluster.open(TestRun.DATA, TestRun.options(template, new TestRun.HandClock()))) {
            first.checkpoint();
        }
        template.syncAll();
        int runs =
                CrashSearch.of("cluster", template, Run::new)
                        .mostCrashes(60)
                        .outcomes(1)
                        .crashesInRecovery(2)
                        .run();
        assertTrue(runs > 200, "runs " + runs);
    }

    private static final class Run implements CrashSearch.Run {
        /** Ids that table t holds for sure, and what it holds once the commit under way is done. */
        private TreeSet<Long> before;

        private TreeSet<Long> after;
        private int verified;

        @Override
        public void workload(SimulatedDisk disk) {
            Cluster cluster =
                    Cluster.open(TestRun.DATA, TestRun.options(disk, new TestRun.HandClock()));
            Backend backend = cluster.newBackend();
            after = new TreeSet<>();
            backend.begin();
            Table table = backend.createTable("t", BackendTest.COLUMNS, TableOptions.DEFAULT);
            backend.commit();
            before = after;
            for (int round = 0; round < 4; round++) {
                after = new TreeSet<>(before);
                backend.begin();
                if (round == 2) {
                    backend.truncate("t");
                    after.clear();
                }
                for (int i = 0; i < 3; i++) {
                    insert(table, round * 10 + i);
                    after.add((long) round * 10 + i);
                }
                backend.createTable("u" + round, BackendTest.COLUMNS, TableOptions.DEFAULT);
                if (round > 0) {
                    backend.dropTable("u" + (round - 1));
                }
                backend.commit();
                before = after;
                backend.begin();
                insert(table, 1000);
                cluster.checkpoint();
                backend.rollback();
            }
            cluster.close();
        }

        private static void insert(Table table, int id) {
            RowValues row = table.newRow();
            row.setNumber(0, id);
            row.setText(1, "x".repeat(id % 2 == 0 ? 10 : 3000));
            table.insert(row);
        }

        @Override
        public void verify(SimulatedDisk found) {
            // Empty, it would keep everybody out, as it does with PostgreSQL: a person has to look.
            found.unlink(TestRun.DATA + "/" + LockFile.NAME);
            Cluster cluster =
                    Cluster.open(TestRun.DATA, TestRun.options(found, new TestRun.HandClock()));
            try (Backend backend = cluster.newBackend()) {
                check(backend);
                backend.begin();
                backend.createTable(
                        "later" + ++verified, BackendTest.COLUMNS, TableOptions.DEFAULT);
                backend.commit();
            }
            cluster.checkpoint();
            cluster.close();
            Cluster.open(TestRun.DATA, TestRun.options(found, new TestRun.HandClock())).close();
        }

        private void check(Backend backend) {
            TreeSet<Long> rows = new TreeSet<>();
            try {
                Table table = backend.table("t");
                RowValues row = table.newRow();
                backend.begin();
                try (TableScan scan = table.scan()) {
                    while (scan.next()) {
                        scan.read(row);
                        rows.add(row.number(0));
                        assertEquals(
                                row.number(0) % 2 == 0 ? 10 : 3000, table.text(row, 1).length());
                    }
                }
                backend.commit();
            } catch (RefusedException e) {
                assertEquals(null, before, "the table was committed: " + e.getMessage());
                return;
            }
            assertTrue(
                    rows.equals(before) || rows.equals(after),
                    rows + " where " + before + " or " + after + " was committed");
        }
    }
}
