package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.RefusedException;

class TransactionLogsTest {
    private static final UnsafeBuffer NOTHING = new UnsafeBuffer(new byte[0]);

    @TempDir Path directory;
    private final Disk disk = new PosixDisk();
    private XactModule module;
    private XactCounters counters;

    @BeforeEach
    void makeDirectories() throws IOException {
        for (String name :
                List.of(
                        "pg_xact",
                        "pg_subtrans",
                        "pg_commit_ts",
                        "pg_twophase",
                        "pg_multixact/offsets",
                        "pg_multixact/members")) {
            Files.createDirectories(directory.resolve(name));
        }
        module = new XactModule(disk, directory.toString());
        counters = (XactCounters) module.counters();
    }

    private long size(String name) throws IOException {
        Path path = directory.resolve(name);
        return Files.exists(path) ? Files.size(path) : -1;
    }

    private ByteBuffer content(String name) throws IOException {
        return ByteBuffer.wrap(Files.readAllBytes(directory.resolve(name)))
                .order(ByteOrder.LITTLE_ENDIAN);
    }

    @Test
    void recoveryLeavesTheFilesThatPostgresLeaves() throws IOException {
        counters.nextFullXid(2000);
        counters.nextMulti(1, 0);
        module.commitLog().zeroPageNow(0);
        module.multiXacts().zeroOffsetsPageNow(0);
        module.multiXacts().zeroMembersPageNow(0);
        module.beforeRedo(null);
        module.commitLog().setTreeStatus(1999, NOTHING, 0, 0, CommitLog.COMMITTED);
        counters.advancePastXid(2049);
        assertEquals(-1, size("pg_subtrans/0000"));
        module.afterRedo(null);
        module.checkpoint(0);
        assertEquals(8192, size("pg_xact/0000"));
        assertEquals(2 * 8192, size("pg_subtrans/0000"), "2050 lies on the second page");
        assertEquals(8192, size("pg_multixact/offsets/0000"));
        assertEquals(8192, size("pg_multixact/members/0000"));
        assertEquals(0x40, content("pg_xact/0000").get(1999 / 4) & 0xC0);
    }

    @Test
    void subtransSegmentsGoOnlyAfterRecovery() throws IOException {
        int perSegment = SubTransLog.XACTS_PER_PAGE * Slru.PAGES_PER_SEGMENT;
        counters.nextFullXid(perSegment * 3L + 5);
        Files.write(directory.resolve("pg_subtrans/0000"), new byte[8192]);
        module.beforeRedo(null);
        module.commitLog().zeroPageNow(CommitLog.pageOf(perSegment * 3 + 5));
        module.multiXacts().zeroOffsetsPageNow(0);
        module.afterRedo(null);
        module.checkpoint(0);
        assertEquals(8192, size("pg_subtrans/0000"), "the end-of-recovery checkpoint keeps it");
        module.afterRecovery(null);
        module.checkpoint(0);
        assertEquals(-1, size("pg_subtrans/0000"));
        assertEquals(8192, size("pg_subtrans/0003"));
    }

    @Test
    @DisplayName("C23: the pages of running subtransactions are zeroed across the wrap")
    void subtransStartupWraps() throws IOException {
        SubTransLog log = module.subTrans();
        Files.write(directory.resolve("pg_subtrans/0000"), filled(8192, 7));
        log.startup(-SubTransLog.XACTS_PER_PAGE - 1, 5);
        log.slru().checkpoint();
        int last = log.slru().maxPage();
        assertEquals(0xFFFF, last / 32);
        assertEquals(32 * 8192, size("pg_subtrans/FFFF"));
        assertEquals(8192, size("pg_subtrans/0000"));
        assertEquals(0, content("pg_subtrans/0000").getLong(0));
    }

    private static byte[] filled(int length, int value) {
        byte[] bytes = new byte[length];
        java.util.Arrays.fill(bytes, (byte) value);
        return bytes;
    }

    @Test
    void multixactsAreReadBackAcrossGroupsAndPages() {
        MultiXactLog log = module.multiXacts();
        Random random = new Random(1);
        UnsafeBuffer list = new UnsafeBuffer(new byte[8 * 30]);
        int offset = MultiXactLog.MEMBERS_PER_PAGE - 40;
        int[] firsts = new int[20];
        int[] counts = new int[20];
        int[] xids = new int[600];
        int[] modes = new int[600];
        int base = offset;
        for (int multi = 0; multi < 20; multi++) {
            firsts[multi] = offset;
            counts[multi] = 1 + random.nextInt(8);
            for (int i = 0; i < counts[multi]; i++) {
                int xid = random.nextInt();
                int mode = random.nextInt(MultiXactLog.MAX_STATUS + 1);
                list.putInt(i * 8, xid);
                list.putInt(i * 8 + 4, mode);
                xids[offset - base] = xid;
                modes[offset - base] = mode;
                offset++;
            }
            log.record(2040 + multi, firsts[multi], list, 0, counts[multi]);
            offset = firsts[multi] + counts[multi];
        }
        for (int multi = 0; multi < 20; multi++) {
            assertEquals(firsts[multi], log.memberOffset(2040 + multi));
        }
        for (int i = base; i < offset; i++) {
            assertEquals(xids[i - base], log.memberXid(i));
            assertEquals(modes[i - base], log.memberStatus(i));
        }
    }

    @Test
    @DisplayName("C23: multixact numbers and member offsets go on past their wrap")
    void multixactsWrap() {
        MultiXactLog log = module.multiXacts();
        UnsafeBuffer list = new UnsafeBuffer(new byte[16]);
        list.putInt(0, 100);
        list.putInt(8, 200);
        log.record(-1, -1, list, 0, 2);
        assertEquals(-1, log.memberOffset(-1));
        assertEquals(100, log.memberXid(-1));
        assertEquals(200, log.memberXid(0));
        counters.nextMulti(-1, -1);
        counters.advanceNextMulti(0, 1);
        assertEquals(0, counters.nextMulti());
        assertEquals(1, counters.nextMultiOffset());
        counters.advanceNextMulti(-5, -5);
        assertEquals(0, counters.nextMulti(), "an older number does not move it back");
    }

    @Test
    void membersOfOnePageLieInGroupsOfTwentyBytes() {
        assertEquals(1636, MultiXactLog.MEMBERS_PER_PAGE);
        assertEquals(4, MultiXactLog.xidOffset(0));
        assertEquals(16, MultiXactLog.xidOffset(3));
        assertEquals(24, MultiXactLog.xidOffset(4));
        assertEquals(408 * 20 + 16, MultiXactLog.xidOffset(1635));
        assertEquals(4, MultiXactLog.xidOffset(1636));
        assertEquals(1, MultiXactLog.memberPageOf(1636));
    }

    @Test
    void multixactTrimKeepsWhatIsInUse() throws IOException {
        Files.write(directory.resolve("pg_multixact/offsets/0000"), filled(8192, 7));
        Files.write(directory.resolve("pg_multixact/members/0000"), filled(8192, 7));
        module.multiXacts().trim(10, 6);
        module.checkpoint(0);
        ByteBuffer offsets = content("pg_multixact/offsets/0000");
        assertEquals(0x07070707, offsets.getInt(9 * 4));
        assertEquals(0, offsets.getInt(10 * 4));
        assertEquals(0, offsets.getInt(8188));
        ByteBuffer members = content("pg_multixact/members/0000");
        assertEquals(0x07070707, members.getInt(20), "lock modes of the group stay");
        assertEquals(0x07070707, members.getInt(28), "member 5");
        assertEquals(0, members.getInt(32), "member 6");
        assertEquals(0, members.getInt(8188));
    }

    @Test
    void multixactTrimLeavesTheFirstGroupOfAPageAlone() throws IOException {
        Files.write(directory.resolve("pg_multixact/members/0000"), filled(8192, 7));
        module.multiXacts().trim(2048, 2);
        module.checkpoint(0);
        assertArrayEquals(
                filled(8192, 7),
                Files.readAllBytes(directory.resolve("pg_multixact/members/0000")));
    }

    @Test
    void multixactTruncationRemovesMembersAndOffsetsBeforeTheNewOldest() {
        MultiXactLog log = module.multiXacts();
        int membersPerSegment = MultiXactLog.MEMBERS_PER_PAGE * 32;
        int offsetsPerSegment = MultiXactLog.OFFSETS_PER_PAGE * 32;
        for (int segment = 0; segment < 4; segment++) {
            log.zeroMembersPageNow(segment * 32);
            log.zeroOffsetsPageNow(segment * 32);
        }
        log.truncate(offsetsPerSegment * 2 + 7, 5, membersPerSegment * 3);
        assertEquals(List.of("0003"), sorted("pg_multixact/members"));
        assertEquals(List.of("0002", "0003"), sorted("pg_multixact/offsets"));
    }

    private List<String> sorted(String name) {
        return disk.list(directory.resolve(name).toString()).stream().sorted().toList();
    }

    @Test
    void commitTimestampsAreKeptOnlyWhileTracked() throws IOException {
        CommitTimestampLog log = module.commitTimestamps();
        counters.nextFullXid(900);
        module.beforeRedo(null);
        log.setTree(10, NOTHING, 0, 0, 77, 1, counters);
        assertEquals(-1, size("pg_commit_ts/0000"));
        counters.trackCommitTimestamp(true);
        assertEquals(900, counters.oldestCommitTsXid());
        UnsafeBuffer subxids = new UnsafeBuffer(new byte[4]);
        subxids.putInt(0, 950);
        log.setTree(900, subxids, 0, 1, 0x1122334455667788L, 9, counters);
        assertEquals(0x1122334455667788L, log.time(950));
        assertEquals(950, counters.newestCommitTsXid());
        module.checkpoint(0);
        ByteBuffer file = content("pg_commit_ts/0000");
        int at = 8192 + (900 - 819) * 10;
        assertEquals(0x1122334455667788L, file.getLong(at));
        assertEquals(9, file.getShort(at + 8));
        counters.trackCommitTimestamp(false);
        assertEquals(-1, size("pg_commit_ts/0000"));
        assertEquals(0, counters.oldestCommitTsXid());
    }

    @Test
    void controlFileSettingTurnsTrackingOnWhenRedoBegins() throws IOException {
        counters.nextFullXid(5);
        counters.trackCommitTimestamp(true);
        assertEquals(-1, size("pg_commit_ts/0000"));
        module.beforeRedo(null);
        assertEquals(-1, size("pg_commit_ts/0000"), "nothing is written before redo");
        module.commitTimestamps().setTree(4, NOTHING, 0, 0, 1, 0, counters);
        assertEquals(8192, size("pg_commit_ts/0000"), "the next xid's page");
    }

    @Test
    void preparedTransactionsAreRefusedBeforeAnythingIsWritten() throws IOException {
        Files.write(directory.resolve("pg_twophase/00000123"), new byte[10]);
        RefusedException e = assertThrows(RefusedException.class, () -> module.beforeRedo(null));
        assertTrue(e.getMessage().contains("pg_twophase/00000123"), e.getMessage());
    }

    @Test
    @DisplayName("C23: the next xid moves past the wrap and its epoch with it")
    void nextXidWraps() {
        counters.nextFullXid(0x5_FFFFFFF0L);
        counters.advancePastXid(0xFFFFFFFE);
        assertEquals(0x5_FFFFFFFFL, counters.nextFullXid());
        counters.advancePastXid(-1);
        assertEquals(0x6_00000003L, counters.nextFullXid());
        counters.advancePastXid(0xFFFFFFF0);
        assertEquals(0x6_00000003L, counters.nextFullXid(), "an older xid changes nothing");
        counters.advancePastXid(100);
        assertEquals(0x6_00000065L, counters.nextFullXid());
        assertEquals(0x65, counters.oldestActiveXid());
    }
}
