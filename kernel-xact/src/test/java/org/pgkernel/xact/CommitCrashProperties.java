package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.pgkernel.recovery.ResourceManager;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.testkit.CrashSearch;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.wal.WalWriter;

/** Transactions over a real log on a simulated disk, crashed at every change (XACT-12, XACT-13). */
class CommitCrashProperties {
    private static final int SEGMENT = 1 << 16;
    private static final long START = SEGMENT + 40;

    /** A page of pg_xact and the wrap are crossed. */
    private static final long[] NEXT = {0x5_FFFF_FFF8L, CommitLog.XACTS_PER_PAGE - 6, 1000};

    /** The writer of recovery's end, made safe for several sessions. */
    private static class DiskWal implements XactWal {
        private final WalWriter writer;

        DiskWal(SimulatedDisk disk) {
            writer = new WalWriter(disk, XactFixture.DATA + "/pg_wal", 1, SEGMENT, 1, START, 0, 0);
        }

        @Override
        public synchronized long insert(WalRecordBuilder record) {
            return writer.append(record);
        }

        @Override
        public synchronized void flush(long lsn) {
            writer.flush();
        }

        @Override
        public void flushSoon(long lsn) {}
    }

    private static final class Transaction {
        final List<List<Integer>> levels = new ArrayList<>(List.of(new ArrayList<>()));
        final List<Integer> aborted = new ArrayList<>();
        boolean commits;
        boolean durable;

        List<Integer> xids() {
            return levels.stream().flatMap(List::stream).toList();
        }
    }

    private record Multi(int multi, int xid1, int xid2, int durableCommitsBefore) {}

    private static final class Run implements CrashSearch.Run {
        private final long seed;
        private final long next;
        private final boolean forgetsToFlush;
        private final List<Transaction> transactions = new ArrayList<>();
        private final List<Multi> multis = new ArrayList<>();
        private int durableCommits;

        Run(long seed, long next, boolean forgetsToFlush) {
            this.seed = seed;
            this.next = next;
            this.forgetsToFlush = forgetsToFlush;
        }

        @Override
        public void workload(SimulatedDisk disk) {
            XactModule module = XactFixture.recovered(disk, next);
            XactWal wal =
                    forgetsToFlush
                            ? new DiskWal(disk) {
                                @Override
                                public void flush(long lsn) {}
                            }
                            : new DiskWal(disk);
            TransactionManager manager =
                    XactFixture.manager(module, wal, XactFixture.options(2, 2));
            TransactionSession[] sessions = {manager.openSession(5), manager.openSession(5)};
            Transaction[] current = new Transaction[2];
            Random random = new Random(seed);
            for (int i = 0; i < 50; i++) {
                int s = random.nextInt(2);
                if (random.nextInt(12) == 0) {
                    module.checkpoint(0);
                } else if (current[s] == null) {
                    sessions[s].begin();
                    current[s] = new Transaction();
                    transactions.add(current[s]);
                } else {
                    current[s] = step(manager, sessions[s], current[s], random);
                }
            }
        }

        private Transaction step(
                TransactionManager manager,
                TransactionSession session,
                Transaction transaction,
                Random random) {
            switch (random.nextInt(8)) {
                case 0, 1, 2 -> {
                    if (session.xidIfAny() == 0 && parentsHaveXids(transaction)) {
                        transaction.levels.getLast().add(session.xid());
                    }
                }
                case 3 -> {
                    session.savepoint();
                    transaction.levels.add(new ArrayList<>());
                }
                case 4 -> {
                    if (session.level() > 0) {
                        transaction.aborted.addAll(transaction.levels.removeLast());
                        session.rollbackTo(session.level());
                        transaction.levels.add(new ArrayList<>());
                    }
                }
                case 5 -> {
                    int xid = session.xidIfAny();
                    if (xid != 0) {
                        manager.multiXacts().setOldestMember(session);
                        int other = session.topXidIfAny();
                        int multi = manager.multiXacts().create(session, xid, 1, other, 5);
                        multis.add(new Multi(multi, xid, other, durableCommits));
                    }
                }
                case 6 -> {
                    transaction.aborted.addAll(transaction.xids());
                    transaction.levels.clear();
                    session.rollback();
                    return null;
                }
                default -> {
                    boolean synchronous = random.nextInt(3) > 0;
                    transaction.commits = true;
                    session.commit(synchronous);
                    transaction.durable = synchronous;
                    durableCommits += synchronous && !transaction.xids().isEmpty() ? 1 : 0;
                    return null;
                }
            }
            return transaction;
        }

        private static boolean parentsHaveXids(Transaction transaction) {
            return transaction.levels.stream()
                    .limit(transaction.levels.size() - 1)
                    .noneMatch(List::isEmpty);
        }

        @Override
        public void verify(SimulatedDisk found) {
            XactModule module = new XactModule(found, XactFixture.DATA);
            XactFixture.counters(module, next);
            module.beforeRedo(null);
            Set<Integer> onDisk = new HashSet<>();
            for (Transaction transaction : transactions) {
                for (int xid : transaction.xids()) {
                    if (status(module, xid) == CommitLog.COMMITTED) {
                        onDisk.add(xid);
                    }
                }
            }
            replay(found, module);
            module.afterRedo(null);
            module.afterRecovery(null);
            for (Transaction transaction : transactions) {
                check(module, transaction);
            }
            for (int xid : onDisk) {
                assertEquals(CommitLog.COMMITTED, status(module, xid));
            }
            checkMultis(module);
        }

        /** An xid whose page was never made had no record either. */
        private static int status(XactModule module, int xid) {
            CommitLog log = module.commitLog();
            return log.slru().physicalPageExists(CommitLog.pageOf(xid))
                    ? log.status(xid)
                    : CommitLog.IN_PROGRESS;
        }

        /** Every record is one that redo understands, and pg_xact on disk was never ahead. */
        private void replay(SimulatedDisk found, XactModule module) {
            try (WalReader reader =
                    new WalReader(
                            found,
                            XactFixture.DATA + "/pg_wal",
                            TimelineHistory.of(1),
                            SEGMENT,
                            1)) {
                reader.begin(START);
                for (WalRecord record = reader.next(); record != null; record = reader.next()) {
                    module.counters().advancePastXid(record.xid());
                    manager(module, record.rmid()).redo(record, null);
                }
            }
        }

        private static ResourceManager manager(XactModule module, int rmid) {
            return module.resourceManagers().stream()
                    .filter(each -> each.id() == rmid)
                    .findFirst()
                    .orElseThrow(() -> new AssertionError("a record of " + RmgrIds.name(rmid)));
        }

        private void check(XactModule module, Transaction transaction) {
            Set<Integer> states = new HashSet<>();
            for (int xid : transaction.xids()) {
                states.add(status(module, xid) == CommitLog.COMMITTED ? 1 : 0);
            }
            assertTrue(states.size() < 2, "half of a transaction is committed");
            boolean committed = states.contains(1);
            assertTrue(transaction.commits || !committed, "committed but never asked to");
            if (transaction.durable) {
                assertFalse(states.contains(0), "an acknowledged commit is lost");
            }
            for (int xid : transaction.aborted) {
                assertFalse(status(module, xid) == CommitLog.COMMITTED);
            }
            for (int xid : transaction.xids()) {
                if (committed) {
                    assertTrue((int) module.counters().nextFullXid() - xid > 0, "xid used again");
                }
            }
        }

        /** Who was created before a durable commit is whole. */
        private void checkMultis(XactModule module) {
            if (multis.stream().noneMatch(multi -> multi.durableCommitsBefore < durableCommits)) {
                return;
            }
            TransactionManager manager =
                    XactFixture.manager(
                            module, new XactFixture.CountingWal(), XactFixture.options(2, 2));
            TransactionSession session = manager.openSession(5);
            MultiXactMembers members = new MultiXactMembers();
            for (Multi multi : multis) {
                if (multi.durableCommitsBefore < durableCommits) {
                    manager.multiXacts().read(session, multi.multi, members);
                    assertEquals(2, members.count());
                    assertEquals(multi.xid1, members.xid(0));
                    assertEquals(1, members.status(0));
                    assertEquals(multi.xid2, members.xid(1));
                    assertEquals(5, members.status(1));
                }
            }
        }
    }

    private static CrashSearch search(long seed, long next, boolean forgetsToFlush) {
        SimulatedDisk template = XactFixture.disk();
        XactFixture.createLogs(template, next);
        template.syncAll();
        return CrashSearch.of("xact", template, () -> new Run(seed, next, forgetsToFlush))
                .mostCrashes(30)
                .outcomes(2);
    }

    @Property(tries = 40)
    void whatWasCommittedAndFlushedIsCommittedAfterRedoAndNothingElse(@ForAll long seed) {
        search(seed, NEXT[(int) Math.floorMod(seed, 3L)], false).run();
    }

    @Property(tries = 1)
    void aCommitThatIsAcknowledgedWithoutAFlushIsFound() {
        assertThrows(
                Throwable.class,
                () -> {
                    for (long seed = 0; seed < 20; seed++) {
                        search(seed, 1000, true).run();
                    }
                });
    }
}
