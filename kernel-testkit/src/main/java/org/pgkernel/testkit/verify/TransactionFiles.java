package org.pgkernel.testkit.verify;

import java.util.HashMap;
import java.util.Map;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.DbState;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.disk.Disk;

/**
 * What became of each transaction, read from pg_xact, pg_multixact and pg_control of a cluster that
 * was shut down: nobody runs, who has not committed never will. (PostgreSQL: clog.c, multixact.c.)
 */
final class TransactionFiles {
    private static final int PAGE = 8192;
    private static final int PAGES_IN_SEGMENT = 32;
    private static final int XIDS_IN_SEGMENT = 4 * PAGE * PAGES_IN_SEGMENT;
    private static final int OFFSETS_IN_SEGMENT = PAGE / 4 * PAGES_IN_SEGMENT;
    private static final int MEMBERS_IN_PAGE = PAGE / 20 * 4;
    private static final int MEMBERS_IN_SEGMENT = MEMBERS_IN_PAGE * PAGES_IN_SEGMENT;
    private static final int COMMITTED = 1;

    /** (PostgreSQL: MultiXactStatusNoKeyUpdate; the only one above is MultiXactStatusUpdate.) */
    private static final int NO_KEY_UPDATE = 4;

    private final Disk disk;
    private final String directory;
    private final ControlFile control;
    private final Map<String, UnsafeBuffer> segments = new HashMap<>();

    TransactionFiles(Disk disk, String directory) {
        this.disk = disk;
        this.directory = directory;
        this.control = ControlFile.read(disk, directory);
        if (control.state() != DbState.SHUTDOWNED) {
            throw new AssertionError("not shut down but " + control.state() + ": " + directory);
        }
    }

    ControlFile control() {
        return control;
    }

    /** True if an xid of a tuple can be: special, or already assigned. */
    boolean mayExist(int xid) {
        return !TransactionId.isNormal(xid)
                || TransactionId.precedes(xid, TransactionId.xidOf(control.checkPointNextXid()));
    }

    boolean multiMayExist(int multi) {
        return multi - control.checkPointNextMulti() < 0;
    }

    boolean committed(int xid) {
        if (!TransactionId.isNormal(xid)) {
            return xid != TransactionId.INVALID;
        }
        long id = Integer.toUnsignedLong(xid);
        UnsafeBuffer segment = segment("pg_xact", id / XIDS_IN_SEGMENT);
        int at = (int) (id % XIDS_IN_SEGMENT);
        if (at / 4 >= segment.capacity()) {
            return false;
        }
        return (segment.getByte(at / 4) >> at % 4 * 2 & 3) == COMMITTED;
    }

    /** The one member that changed the row, {@link TransactionId#INVALID} if all only locked it. */
    int updater(int multi) {
        long offset = offset(multi);
        int next = multi + 1 == 0 ? 1 : multi + 1;
        long end =
                next == control.checkPointNextMulti()
                        ? Integer.toUnsignedLong(control.checkPointNextMultiOffset())
                        : offset(next);
        for (long member = offset; member != end; member = member + 1 & 0xFFFF_FFFFL) {
            UnsafeBuffer segment = segment("pg_multixact/members", member / MEMBERS_IN_SEGMENT);
            int inSegment = (int) (member % MEMBERS_IN_SEGMENT);
            int group = inSegment / MEMBERS_IN_PAGE * PAGE + inSegment % MEMBERS_IN_PAGE / 4 * 20;
            int number = inSegment % 4;
            // Offset 0 is never given out, its place stays empty.
            int xid = segment.getInt(group + 4 + 4 * number);
            if (segment.getByte(group + number) >= NO_KEY_UPDATE && xid != 0) {
                return xid;
            }
        }
        return TransactionId.INVALID;
    }

    private long offset(int multi) {
        long id = Integer.toUnsignedLong(multi);
        UnsafeBuffer segment = segment("pg_multixact/offsets", id / OFFSETS_IN_SEGMENT);
        return Integer.toUnsignedLong(segment.getInt((int) (id % OFFSETS_IN_SEGMENT) * 4));
    }

    private UnsafeBuffer segment(String log, long number) {
        return segments.computeIfAbsent(
                "%s/%s/%04X".formatted(directory, log, number), path -> WholeFile.read(disk, path));
    }
}
