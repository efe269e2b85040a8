package org.pgkernel.recovery;

import java.time.Clock;
import java.time.Instant;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.TransactionId;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.wal.WalWriter;

/** Records with which recovery ends, durable on return. */
final class EndOfRecoveryRecords {
    private static final long SECONDS_TO_2000 = 946_684_800L;

    private EndOfRecoveryRecords() {}

    /**
     * A record that lost its second half stays where it is; this one says so. (PostgreSQL:
     * CreateOverwriteContrecordRecord.)
     */
    static void overwriteContrecord(WalWriter writer, long aborted, Clock clock) {
        UnsafeBuffer data = new UnsafeBuffer(new byte[16]);
        data.putLong(0, aborted);
        data.putLong(8, micros(clock));
        append(writer, XlogRedo.OVERWRITE_CONTRECORD, data);
    }

    /** (PostgreSQL: CreateEndOfRecoveryRecord.) @return its end */
    static long endOfRecovery(WalWriter writer, int newTimeline, int oldTimeline, Clock clock) {
        UnsafeBuffer data = new UnsafeBuffer(new byte[XlogRedo.END_OF_RECOVERY_LENGTH]);
        data.putLong(0, micros(clock));
        data.putInt(8, newTimeline);
        data.putInt(12, oldTimeline);
        return append(writer, XlogRedo.END_OF_RECOVERY, data);
    }

    private static long append(WalWriter writer, int type, UnsafeBuffer data) {
        long end =
                writer.append(
                        new WalRecordBuilder()
                                .begin(RmgrIds.XLOG, type, TransactionId.INVALID)
                                .data(data, 0, data.capacity()));
        writer.flush();
        return end;
    }

    /** Since 2000. (PostgreSQL: TimestampTz.) */
    private static long micros(Clock clock) {
        Instant now = clock.instant();
        return (now.getEpochSecond() - SECONDS_TO_2000) * 1_000_000L + now.getNano() / 1000;
    }
}
