package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.*;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.wal.WalRecordBuilder;

class TransactionsTest {
    /** Remembers what was inserted and does as told in a flush. */
    private static final class TestWal extends XactFixture.CountingWal {
        final List<String> records = new ArrayList<>();
        Runnable inFlush = () -> {};

        @Override
        public synchronized long insert(WalRecordBuilder record) {
            records.add(RmgrIds.name(record.rmid()) + " " + record.info());
            return super.insert(record);
        }

        @Override
        public synchronized void flush(long lsn) {
            inFlush.run();
            super.flush(lsn);
        }
    }

    private final TestWal wal = new TestWal();
    private final List<String> warnings = new ArrayList<>();
    private final List<Integer> vacuums = new ArrayList<>();
    private final List<String> dropped = new ArrayList<>();
    private XactModule module;
    private TransactionManager manager;

    private final WraparoundListener listener =
            new WraparoundListener() {
                @Override
                public void warning(String message) {
                    warnings.add(message);
                }

                @Override
                public void vacuumNeeded(int database) {
                    vacuums.add(database);
                }
            };

    private void start(long nextFullXid, int oldestXid, int deferCleanupAge) {
        module = XactFixture.module(nextFullXid);
        module.xactCounters().oldestXid(oldestXid, 5);
        start(deferCleanupAge);
    }

    private void start(int deferCleanupAge) {
        manager =
                TransactionManager.start(
                        module,
                        new XactOptions(4, 2, 200_000_000, 400_000_000, deferCleanupAge),
                        wal,
                        listener,
                        (locators, count) -> {
                            for (int i = 0; i < count; i++) {
                                dropped.add(locators[i * 3 + 2] + "");
                            }
                        },
                        () -> 1);
    }

    @Test
    @DisplayName("C23: xids cross 2^32, special ids are left out, the epoch goes up")
    void xidsCrossTheWrap() {
        start(0x5_FFFF_FFFEL, -100, 0);
        TransactionSession session = manager.openSession(5);
        long[] expected = {0x5_FFFF_FFFEL, 0x5_FFFF_FFFFL, 0x6_0000_0003L, 0x6_0000_0004L};
        for (long full : expected) {
            session.begin();
            session.xid();
            assertEquals(full, session.topFullXidIfAny());
            session.commit(true);
            assertTrue(manager.didCommit((int) full));
            assertFalse(manager.isInProgress((int) full));
        }
        assertEquals(1, wal.records.stream().filter(r -> r.equals("CLOG 0")).count());
        assertEquals(0x6_0000_0005L, manager.nextFullXid());
    }

    @Test
    @DisplayName("C23: a crash right after the last xid before the wrap is recovered from")
    void theFirstPageAfterTheWrapNeedNotBeThere() {
        SimulatedDisk disk = XactFixture.disk();
        XactFixture.createLogs(disk, 0x5_FFFF_FFF0L);
        module = XactFixture.recovered(disk, 0x6_0000_0003L);
        start(0);
        TransactionSession session = manager.openSession(5);
        session.begin();
        assertEquals(3, session.xid());
        session.commit(true);
        assertTrue(manager.didCommit(3));
    }

    @Test
    @DisplayName("C23: the limits are PostgreSQL's, normal xids all, past the wrap too")
    void limitsAreThoseOfPostgres() {
        XidLimits limits = XidLimits.of(1000, 5, 200_000_000);
        assertEquals(200_001_000, limits.vacuum());
        assertEquals(1000 + Integer.MAX_VALUE, limits.wrap());
        assertEquals(limits.wrap() - 3_000_000, limits.stop());
        assertEquals(limits.wrap() - 40_000_000, limits.warn());
        for (int oldest : new int[] {3, -1, 1 << 31, (1 << 31) + 2, 0x8000_0003, 40_000_001}) {
            XidLimits each = XidLimits.of(oldest, 5, 200_000_000);
            assertTrue(TransactionId.isNormal(each.wrap()));
            for (int limit : new int[] {each.vacuum(), each.warn(), each.stop()}) {
                assertTrue(TransactionId.isNormal(limit));
                assertTrue(TransactionId.precedes(oldest, limit));
            }
        }
    }

    @Test
    @DisplayName("C23: near the wraparound of the oldest xid assignment warns, then stops")
    void assignmentStopsBeforeDataIsLost() {
        int oldest = 1000;
        int stop = XidLimits.of(oldest, 5, 0).stop();
        start(Integer.toUnsignedLong(stop - 1), oldest, 0);
        TransactionSession session = manager.openSession(5);
        session.begin();
        session.xid();
        assertEquals(
                List.of("the database with OID 5 must be vacuumed within 3000001 transactions"),
                warnings);
        session.commit(true);
        session.begin();
        String message = assertThrows(RefusedException.class, session::xid).getMessage();
        assertTrue(message.contains("vacuum the database with OID 5"), message);
        assertEquals(List.of(5), vacuums);
        assertEquals(stop, (int) manager.nextFullXid(), "the counter has not moved");
        session.rollback();
        manager.advanceOldest(session, stop - 100_000_000, 5, 1, 5);
        session.begin();
        assertEquals(stop, session.xid());
        session.commit(true);
    }

    @Test
    void commitTimesOfFrozenTransactionsGoOnceTheirRecordIsDurable() {
        module = XactFixture.module(1000);
        module.xactCounters().trackCommitTimestamp(true);
        module.afterRecovery(null);
        start(0);
        int perSegment = CommitTimestampLog.XACTS_PER_PAGE * Slru.PAGES_PER_SEGMENT;
        int needed = 2 * perSegment + 100;
        TransactionSession session = manager.openSession(5);
        for (int xid = 1000; xid < needed + 300; xid++) {
            session.begin();
            session.xid();
            session.commit(false);
        }
        module.checkpoint(0);
        Slru log = module.commitTimestamps().slru();
        assertTrue(log.physicalPageExists(CommitTimestampLog.pageOf(1000)));
        wal.flushed = 0;
        session.begin();
        wal.inFlush =
                () ->
                        assertTrue(
                                log.physicalPageExists(CommitTimestampLog.pageOf(1000)),
                                "a file went before its record was durable");
        manager.advanceOldest(session, needed, 5, 1, 5);
        assertTrue(wal.flushed > 0);
        assertEquals("CommitTs 16", wal.records.getLast());
        assertEquals(needed, module.xactCounters().oldestCommitTsXid());
        assertEquals(needed + 299, module.xactCounters().newestCommitTsXid());
        assertFalse(log.physicalPageExists(CommitTimestampLog.pageOf(1000)));
        assertFalse(log.physicalPageExists(CommitTimestampLog.pageOf(perSegment + 1)));
        assertEquals(1, module.commitTimestamps().time(needed), "what is needed stays");
        int records = wal.records.size();
        manager.advanceOldest(session, needed + 1, 5, 1, 5);
        assertEquals(records, wal.records.size(), "no file to remove, no record");
        assertEquals(needed + 1, module.xactCounters().oldestCommitTsXid());
    }

    @Test
    @DisplayName("C23: a deferred horizon neither goes below the first normal xid nor ahead")
    void deferredHorizonsStayWithinTheNumberSpace() {
        start(10, 3, 50);
        Horizons horizons = new Horizons();
        manager.horizons(5, horizons);
        assertEquals(3, horizons.dataOldestNonremovable());
        assertEquals(3, horizons.sharedOldestNonremovable());
        int back = TransactionManager.retreat(20, 50, 0x1_0000_0014L);
        assertEquals(-30, back);
        assertEquals(-1, TransactionManager.retreat(52, 50, 0x1_0000_0034L), "not a special id");
    }

    @Test
    void vacuumingSessionsHoldBackPgSubtransOnly() {
        start(1000, 900, 0);
        TransactionSession vacuum = manager.openSession(5);
        TransactionSession other = manager.openSession(6);
        vacuum.begin();
        vacuum.vacuums();
        vacuum.snapshot(vacuum.newSnapshot());
        other.begin();
        other.xid();
        other.commit(true);
        other.begin();
        other.snapshot(other.newSnapshot());
        Horizons horizons = new Horizons();
        manager.horizons(5, horizons);
        assertEquals(1000, horizons.oldestConsideredRunning());
        assertEquals(1001, horizons.sharedOldestNonremovable());
        assertEquals(1001, horizons.dataOldestNonremovable());
    }

    @Test
    void aCheckpointWaitsFromTheCommitRecordToPgXact() {
        start(1000, 900, 0);
        TransactionSession session = manager.openSession(5);
        session.begin();
        int xid = session.xid();
        List<String> waited = new ArrayList<>();
        wal.inFlush =
                () -> {
                    assertFalse(manager.didCommit(xid), "pg_xact before the record is durable");
                    assertTrue(manager.isInProgress(xid));
                    assertThrows(
                            KernelStoppedException.class,
                            () -> manager.running().awaitCommits(() -> waited.add("waited")));
                };
        session.commit(true);
        assertEquals(List.of("waited"), waited);
        manager.running().awaitCommits(() -> fail("nobody commits"));
    }

    @Test
    void pgXactWaitsForTheRecordOfAnAsynchronousCommit() {
        start(1000, 900, 0);
        TransactionSession session = manager.openSession(5);
        session.begin();
        int xid = session.xid();
        session.commit(false);
        assertTrue(manager.didCommit(xid));
        assertEquals(0, wal.flushed);
        long lsn = manager.commitLsn(xid);
        assertTrue(lsn > 0);
        module.checkpoint(0);
        assertTrue(wal.flushed >= lsn, "pg_xact was written before its WAL");
    }

    @Test
    void aCommitWhoseFlushFailsStopsTheKernelAndIsNotAcknowledged() {
        start(1000, 900, 0);
        TransactionSession session = manager.openSession(5);
        TransactionSession other = manager.openSession(5);
        other.begin();
        other.xid();
        session.begin();
        int xid = session.xid();
        wal.inFlush =
                () -> {
                    throw new DiskException("could not sync", DiskException.EIO);
                };
        assertThrows(KernelStoppedException.class, () -> session.commit(true));
        assertTrue(manager.isInProgress(xid));
        wal.inFlush = () -> {};
        assertThrows(KernelStoppedException.class, () -> other.commit(true));
        assertThrows(KernelStoppedException.class, () -> module.checkpoint(0));
    }

    @Test
    void relationsGoWhenTheirTransactionHasEnded() {
        start(1000, 900, 0);
        TransactionSession session = manager.openSession(5);
        session.begin();
        session.dropAtCommit(1663, 5, 1);
        session.dropAtAbort(1663, 5, 2);
        int savepoint = session.savepoint();
        session.dropAtCommit(1663, 5, 3);
        session.dropAtAbort(1663, 5, 4);
        session.rollbackTo(savepoint);
        assertEquals(List.of("4"), dropped, "what the subtransaction created");
        session.dropAtCommit(1663, 5, 5);
        session.release(savepoint);
        session.commit(false);
        assertEquals(List.of("4", "5", "1"), dropped);
        assertTrue(wal.flushed > 0, "files went before the record was durable");
        session.begin();
        session.dropAtAbort(1663, 5, 6);
        session.rollback();
        assertEquals(List.of("4", "5", "1", "6"), dropped);
    }

    @Test
    void everySixtyFourSubtransactionsAreAssignedInTheLog() {
        start(1000, 900, 0);
        TransactionSession session = manager.openSession(5);
        session.begin();
        for (int i = 0; i < 130; i++) {
            session.savepoint();
            session.xid();
        }
        assertEquals(2, wal.records.stream().filter(r -> r.equals("Transaction 80")).count());
        session.commit(true);
    }

    @Test
    void multixactsAreReadAsTheyWereCreatedAcrossBothWraps() {
        module = XactFixture.module(1000);
        module.multiXacts().zeroOffsetsPageNow(MultiXactLog.offsetPageOf(-3));
        module.multiXacts().zeroMembersPageNow(MultiXactLog.memberPageOf(-5));
        module.xactCounters().nextMulti(-3, -5);
        module.xactCounters().oldestMulti(-3, 5);
        start(0);
        MultiXacts multis = manager.multiXacts();
        TransactionSession session = manager.openSession(5);
        session.begin();
        multis.setOldestMember(session);
        int xid = session.xid();
        List<Integer> created = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            created.add(multis.create(session, 500 + i, i % 4, xid, 4 + i % 2));
        }
        assertEquals(List.of(-3, -2, -1, 1, 2, 3), created);
        MultiXactMembers members = new MultiXactMembers();
        for (int i = 0; i < 6; i++) {
            multis.read(session, created.get(i), members);
            assertEquals(2, members.count());
            assertEquals(500 + i, members.xid(0));
            assertEquals(i % 4, members.status(0));
            assertEquals(xid, members.xid(1));
            assertEquals(4 + i % 2, members.status(1));
        }
        assertEquals(-3, multis.oldestMulti());
        assertThrows(DamagedDataException.class, () -> multis.read(session, 4, members));
        assertThrows(DamagedDataException.class, () -> multis.read(session, -4, members));
        assertEquals(2, wal.records.stream().filter(r -> r.matches("MultiXact (0|16)")).count());
        session.commit(true);
        assertEquals(4, multis.oldestMulti());
    }

    @Test
    void anExpandedMultixactKeepsWhoRunsOrHasChangedTheRow() {
        start(1000, 900, 0);
        MultiXacts multis = manager.multiXacts();
        TransactionSession[] sessions = new TransactionSession[3];
        for (int i = 0; i < 3; i++) {
            sessions[i] = manager.openSession(5);
            sessions[i].begin();
            sessions[i].xid();
            multis.setOldestMember(sessions[i]);
        }
        int multi = multis.create(sessions[0], 1000, MultiXactMembers.FOR_SHARE, 1001, 5);
        assertEquals(multi, multis.expand(sessions[0], multi, 1000, MultiXactMembers.FOR_SHARE));
        assertTrue(multis.hasRunningMember(sessions[2], multi));
        sessions[0].commit(true);
        sessions[1].commit(true);
        assertFalse(multis.hasRunningMember(sessions[2], multi));
        int expanded = multis.expand(sessions[2], multi, 1002, MultiXactMembers.FOR_KEY_SHARE);
        MultiXactMembers members = new MultiXactMembers();
        multis.read(sessions[2], expanded, members);
        assertEquals(2, members.count());
        assertEquals(1001, members.xid(0), "it has changed the row");
        assertEquals(1002, members.xid(1));
        assertThrows(
                RefusedException.class,
                () -> multis.create(sessions[2], members.clear().add(1, 4).add(2, 5)));
    }

    @Test
    @DisplayName("C23: what is frozen never lies in the future")
    void freezeLimitsAreThoseOfPostgres() {
        FreezeSettings settings = FreezeSettings.DEFAULT;
        FreezeLimits limits =
                FreezeLimits.of(
                        settings, 200_000_000, 400_000_000, 300_000_000, 10, 290_000_000, 8);
        assertEquals(240_000_000, limits.freezeLimit());
        assertEquals(8 - 5_000_000, limits.multiXactCutoff());
        assertEquals(150_000_000, limits.tableAgeLimit());
        assertFalse(limits.isFarBehind());
        assertTrue(limits.isAggressive(150_000_000, 8));
        assertFalse(limits.isAggressive(150_000_001, 8));
        FreezeLimits behind =
                FreezeLimits.of(settings, 200_000_000, 400_000_000, 300_000_000, 10, 50, 8);
        assertTrue(behind.isFarBehind());
        assertEquals(50, behind.freezeLimit(), "nothing that still runs is frozen");
        assertEquals(
                3,
                FreezeLimits.of(FreezeSettings.FREEZE, 200, 400, 50_000_002, 1, 3, 1)
                        .freezeLimit());
    }
}
