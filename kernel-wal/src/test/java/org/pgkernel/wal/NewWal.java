package org.pgkernel.wal;

import java.util.ArrayList;
import java.util.List;

/** The ways in which WAL goes on where an older part ends: each has to leave the same log. */
enum NewWal {
    /** As the end of recovery does. */
    BY_WRITER {
        @Override
        void write(
                WalLog log,
                int timeline,
                long start,
                long last,
                long missing,
                List<WalRecordBuilder> records) {
            byWriter(log, timeline, start, last, missing, records);
        }
    },

    /** At once where the old WAL ends. */
    BY_INSERTER {
        @Override
        void write(
                WalLog log,
                int timeline,
                long start,
                long last,
                long missing,
                List<WalRecordBuilder> records) {
            byInserter(log, timeline, start, last, missing, records);
        }
    },

    /** As a cluster does: the end of recovery writes its records, backends go on behind them. */
    BY_WRITER_THEN_INSERTER {
        @Override
        void write(
                WalLog log,
                int timeline,
                long start,
                long last,
                long missing,
                List<WalRecordBuilder> records) {
            long[] end = byWriter(log, timeline, start, last, missing, records.subList(0, 1));
            byInserter(log, timeline, end[0], end[1], 0, records.subList(1, records.size()));
        }
    };

    /**
     * Writes the records, durable on return; over a missing continuation the first of them says so.
     *
     * @param missing 0, or the page that lacks a continuation, which is then {@code start}
     */
    abstract void write(
            WalLog log,
            int timeline,
            long start,
            long last,
            long missing,
            List<WalRecordBuilder> records);

    /**
     * Goes on as {@link WalLog#read} told: over a missing continuation with a record that names the
     * lost one, on the same timeline.
     *
     * @return how many records were added
     */
    int goOn(WalLog log, List<WalRecordBuilder> records) {
        List<WalRecordBuilder> all = new ArrayList<>(records);
        long missing = log.missingContinuation;
        if (missing != 0) {
            all.addFirst(WalLog.overwrite(log.abortedRecord));
        }
        write(log, 1, missing != 0 ? missing : log.endOfLastRecord, log.lastRecord, missing, all);
        return all.size();
    }

    /**
     * @return end and start of the last record
     */
    private static long[] byWriter(
            WalLog log,
            int timeline,
            long start,
            long last,
            long missing,
            List<WalRecordBuilder> records) {
        try (WalWriter writer = log.writer(timeline, start, last, missing)) {
            long end = start;
            for (WalRecordBuilder record : records) {
                end = writer.append(record);
            }
            writer.flush();
            return new long[] {end, writer.lastRecord()};
        }
    }

    private static void byInserter(
            WalLog log,
            int timeline,
            long start,
            long last,
            long missing,
            List<WalRecordBuilder> records) {
        try (WalInserter inserter = log.inserter(timeline, start, last, missing, 1 << 14)) {
            for (WalRecordBuilder record : records) {
                inserter.insert(record);
            }
            inserter.flush(inserter.insertLsn());
        }
    }
}
