package org.pgkernel.xact;

import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.disk.Disk;

/**
 * Multixacts: sets of transactions that hold or held a row lock together. {@code
 * pg_multixact/offsets} maps a multixact id to the place of its first member, {@code
 * pg_multixact/members} holds the members.
 *
 * <pre>
 *   offsets page: 2048 times 4 bytes, the member offset of multixact page*2048 + i
 *   members page: 409 groups of 20 bytes, then 12 unused
 *     group: 4 bytes, each the lock mode of one member; then 4 xids
 * </pre>
 *
 * Both numbers are unsigned 32-bit and wrap. (PostgreSQL: multixact.c.)
 */
final class MultiXactLog {
    static final int FIRST_MULTI = 1;
    static final int OFFSETS_PER_PAGE = Page.SIZE / 4;
    static final int MEMBERS_PER_GROUP = 4;
    static final int GROUP_SIZE = 20;
    static final int GROUPS_PER_PAGE = Page.SIZE / GROUP_SIZE;
    static final int MEMBERS_PER_PAGE = GROUPS_PER_PAGE * MEMBERS_PER_GROUP;
    static final int MAX_STATUS = 5;

    private static final int OFFSET_SLOTS = 8;
    private static final int MEMBER_SLOTS = 16;

    private final Slru offsets;
    private final Slru members;

    MultiXactLog(Disk disk, String dataDirectory) {
        offsets =
                new Slru(
                        disk,
                        dataDirectory + "/pg_multixact/offsets",
                        OFFSET_SLOTS,
                        offsetPageOf(-1),
                        true,
                        MultiXactLog::offsetPagePrecedes);
        members =
                new Slru(
                        disk,
                        dataDirectory + "/pg_multixact/members",
                        MEMBER_SLOTS,
                        memberPageOf(-1),
                        true,
                        MultiXactLog::memberPagePrecedes);
    }

    Slru offsets() {
        return offsets;
    }

    Slru members() {
        return members;
    }

    static int offsetPageOf(int multi) {
        return Integer.divideUnsigned(multi, OFFSETS_PER_PAGE);
    }

    static int memberPageOf(int offset) {
        return Integer.divideUnsigned(offset, MEMBERS_PER_PAGE);
    }

    static int memberSegmentOf(int offset) {
        return memberPageOf(offset) / Slru.PAGES_PER_SEGMENT;
    }

    /**
     * Where in the page the lock modes of the member's group begin. (PostgreSQL:
     * MXOffsetToFlagsOffset.)
     */
    static int groupOffset(int offset) {
        return Integer.remainderUnsigned(offset >>> 2, GROUPS_PER_PAGE) * GROUP_SIZE;
    }

    /** Where in the page the member's xid is. (PostgreSQL: MXOffsetToMemberOffset.) */
    static int xidOffset(int offset) {
        return groupOffset(offset) + MEMBERS_PER_GROUP + (offset & 3) * 4;
    }

    /** (PostgreSQL: MultiXactIdPrecedes, MultiXactOffsetPrecedes.) */
    static boolean precedes(int a, int b) {
        return a - b < 0;
    }

    static boolean offsetPagePrecedes(int page1, int page2) {
        int multi1 = page1 * OFFSETS_PER_PAGE + FIRST_MULTI + 1;
        int multi2 = page2 * OFFSETS_PER_PAGE + FIRST_MULTI + 1;
        return precedes(multi1, multi2) && precedes(multi1, multi2 + OFFSETS_PER_PAGE - 1);
    }

    static boolean memberPagePrecedes(int page1, int page2) {
        int offset1 = page1 * MEMBERS_PER_PAGE;
        int offset2 = page2 * MEMBERS_PER_PAGE;
        return precedes(offset1, offset2) && precedes(offset1, offset2 + MEMBERS_PER_PAGE - 1);
    }

    /** (PostgreSQL: StartupMultiXact.) */
    void startup(int nextMulti, int nextOffset) {
        offsets.latestPage(offsetPageOf(nextMulti));
        members.latestPage(memberPageOf(nextOffset));
    }

    /** In memory; the record is the caller's. (PostgreSQL: ZeroMultiXactOffsetPage.) */
    void zeroOffsetsPage(int page) {
        synchronized (offsets) {
            offsets.zeroPage(page);
        }
    }

    void zeroMembersPage(int page) {
        synchronized (members) {
            members.zeroPage(page);
        }
    }

    void zeroOffsetsPageNow(int page) {
        synchronized (offsets) {
            offsets.writePage(offsets.zeroPage(page));
        }
    }

    void zeroMembersPageNow(int page) {
        synchronized (members) {
            members.writePage(members.zeroPage(page));
        }
    }

    /**
     * Stores a multixact. (PostgreSQL: RecordNewMultiXact.)
     *
     * @param list {@code count} members from {@code at} on, 8 bytes each: xid, lock mode
     */
    void record(int multi, int offset, DirectBuffer list, int at, int count) {
        synchronized (offsets) {
            int slot = offsets.readPage(offsetPageOf(multi));
            int entry = Integer.remainderUnsigned(multi, OFFSETS_PER_PAGE);
            offsets.memory().putInt(Slru.offset(slot) + entry * 4, offset);
            offsets.markDirty(slot);
        }
        synchronized (members) {
            UnsafeBuffer memory = members.memory();
            int lastPage = -1;
            int slot = 0;
            for (int i = 0; i < count; i++) {
                int member = offset + i;
                int page = memberPageOf(member);
                if (page != lastPage) {
                    slot = members.readPage(page);
                    members.markDirty(slot);
                    lastPage = page;
                }
                int base = Slru.offset(slot);
                memory.putInt(base + xidOffset(member), list.getInt(at + i * 8));
                memory.putByte(
                        base + groupOffset(member) + (member & 3),
                        (byte) list.getInt(at + i * 8 + 4));
            }
        }
    }

    /** The offset of a multixact's first member. */
    int memberOffset(int multi) {
        synchronized (offsets) {
            int slot = offsets.readPage(offsetPageOf(multi));
            return offsets.memory()
                    .getInt(
                            Slru.offset(slot)
                                    + Integer.remainderUnsigned(multi, OFFSETS_PER_PAGE) * 4);
        }
    }

    int memberXid(int offset) {
        synchronized (members) {
            int slot = members.readPage(memberPageOf(offset));
            return members.memory().getInt(Slru.offset(slot) + xidOffset(offset));
        }
    }

    int memberStatus(int offset) {
        synchronized (members) {
            int slot = members.readPage(memberPageOf(offset));
            return members.memory().getByte(Slru.offset(slot) + groupOffset(offset) + (offset & 3));
        }
    }

    /**
     * Removes the members segments from the old first member's to before the new one's, then the
     * offsets segments before the new oldest multixact. (PostgreSQL: PerformMembersTruncation,
     * PerformOffsetsTruncation.)
     */
    void truncate(int newOldestMulti, int oldestOffset, int newOldestOffset) {
        int last = memberSegmentOf(-1);
        int end = memberSegmentOf(newOldestOffset);
        for (int segment = memberSegmentOf(oldestOffset); segment != end; ) {
            members.deleteSegment(segment);
            segment = segment == last ? 0 : segment + 1;
        }
        int previous = newOldestMulti == FIRST_MULTI ? -1 : newOldestMulti - 1;
        offsets.latestPage(offsetPageOf(newOldestMulti));
        offsets.truncate(offsetPageOf(previous));
    }

    /** Zeroes what lies past the next numbers on their pages. (PostgreSQL: TrimMultiXact.) */
    void trim(int nextMulti, int nextOffset) {
        int page = offsetPageOf(nextMulti);
        offsets.latestPage(page);
        int entry = Integer.remainderUnsigned(nextMulti, OFFSETS_PER_PAGE);
        if (entry != 0) {
            synchronized (offsets) {
                int slot = offsets.readPage(page);
                offsets.memory()
                        .setMemory(Slru.offset(slot) + entry * 4, Page.SIZE - entry * 4, (byte) 0);
                offsets.markDirty(slot);
            }
        }
        int memberPage = memberPageOf(nextOffset);
        members.latestPage(memberPage);
        // The first group of a page is not trimmed: PostgreSQL looks at the group's place, not the
        // member's.
        if (groupOffset(nextOffset) != 0) {
            synchronized (members) {
                int slot = members.readPage(memberPage);
                int from = xidOffset(nextOffset);
                members.memory().setMemory(Slru.offset(slot) + from, Page.SIZE - from, (byte) 0);
                members.markDirty(slot);
            }
        }
    }
}
