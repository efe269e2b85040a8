package org.pgkernel.it;

import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.testkit.ClusterComparison;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;

/** Which records touched a page: where to look when a page differs. */
final class RecordTrace {
    private static final Pattern RELATION_FILE =
            Pattern.compile("(?:base/(\\d+)|global)/(\\d+)(?:_(fsm|vm|init))?(?:\\.(\\d+))?");
    private static final int KEPT = 12;

    private RecordTrace() {}

    /** The last records that name the difference's block, oldest first. */
    static List<String> touching(Path wal, long from, ClusterComparison.Difference difference) {
        Matcher matcher = RELATION_FILE.matcher(difference.file());
        if (!matcher.matches()) {
            return List.of("not a relation file");
        }
        boolean global = matcher.group(1) == null;
        int spc = global ? RelFileLocator.GLOBAL_TABLESPACE : RelFileLocator.DEFAULT_TABLESPACE;
        int db = global ? 0 : Integer.parseUnsignedInt(matcher.group(1));
        int rel = Integer.parseUnsignedInt(matcher.group(2));
        ForkNumber fork =
                matcher.group(3) == null
                        ? ForkNumber.MAIN
                        : matcher.group(3).equals("fsm")
                                ? ForkNumber.FSM
                                : matcher.group(3).equals("vm")
                                        ? ForkNumber.VISIBILITY_MAP
                                        : ForkNumber.INIT;
        long block =
                difference.block()
                        + (matcher.group(4) == null
                                ? 0
                                : Long.parseLong(matcher.group(4)) * 131072);
        ArrayDeque<String> found = new ArrayDeque<>();
        int count = 0;
        try (WalReader reader =
                new WalReader(
                        new PosixDisk(), wal.toString(), TimelineHistory.of(1), 16 << 20, 0)) {
            reader.begin(from);
            for (WalRecord record = reader.next(); record != null; record = reader.next()) {
                for (int id = 0; id <= record.maxBlockId(); id++) {
                    if (record.hasBlock(id)
                            && record.blockRel(id) == rel
                            && record.blockDb(id) == db
                            && record.blockSpc(id) == spc
                            && (fork != ForkNumber.MAIN
                                    ? record.blockFork(id) == ForkNumber.MAIN
                                            || record.blockFork(id) == fork
                                    : record.blockFork(id) == fork)
                            && (fork != ForkNumber.MAIN
                                    || difference.block() < 0
                                    || Integer.toUnsignedLong(record.blockNumber(id)) == block)) {
                        count++;
                        found.add(describe(record, id));
                        if (found.size() > KEPT) {
                            found.removeFirst();
                        }
                    }
                }
            }
        }
        List<String> lines = new ArrayList<>(found);
        lines.add(0, count + " records");
        return lines;
    }

    static String describe(WalRecord record, int id) {
        return RmgrIds.name(record.rmid())
                + String.format(" info=%02X", record.info() & 0xFF)
                + " lsn="
                + Lsn.format(record.lsn())
                + " end="
                + Lsn.format(record.endLsn())
                + " xid="
                + Integer.toUnsignedString(record.xid())
                + " block id="
                + id
                + " "
                + record.blockFork(id)
                + " "
                + Integer.toUnsignedString(record.blockNumber(id))
                + (record.hasImage(id)
                        ? record.applyImage(id) ? " image" : " image (not applied)"
                        : "")
                + (record.willInit(id) ? " init" : "");
    }
}
