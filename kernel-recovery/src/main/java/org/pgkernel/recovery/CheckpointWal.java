package org.pgkernel.recovery;

import org.pgkernel.base.Lsn;
import org.pgkernel.bufmgr.DurabilityGate;
import org.pgkernel.wal.WalInserter;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.wal.WalWriter;

/**
 * The WAL that is written once redo is over: by one thread until the end of recovery, by many
 * after. It is also what pages wait for.
 */
interface CheckpointWal extends DurabilityGate {
    /** Every page that a later record changes first gets an image there. @return the redo point */
    long moveRedo();

    /**
     * @return the record's end
     */
    long insert(WalRecordBuilder record);

    void flush(long lsn);

    /** Where the record that {@link #insert} took last begins. */
    long startOf(WalRecordBuilder record);

    static CheckpointWal of(WalWriter writer) {
        return new Appended(writer);
    }

    static CheckpointWal of(WalInserter inserter) {
        return new Inserted(inserter);
    }

    /** The end of recovery: one thread appends, but any thread may want a page written. */
    final class Appended implements CheckpointWal {
        private final WalWriter writer;

        /** End of what is durable for sure. Written under this object's lock. */
        private volatile long flushed;

        Appended(WalWriter writer) {
            this.writer = writer;
            flushed = writer.flushedLsn();
        }

        @Override
        public long moveRedo() {
            return writer.nextRecordLsn();
        }

        @Override
        public long insert(WalRecordBuilder record) {
            return writer.append(record);
        }

        /** A page cannot carry an LSN of WAL that was not appended, unless it is damaged. */
        @Override
        public synchronized void flush(long lsn) {
            if (Lsn.before(flushed, lsn)) {
                long appended = writer.nextRecordLsn();
                writer.flush();
                flushed = Lsn.max(flushed, appended);
            }
        }

        @Override
        public long startOf(WalRecordBuilder record) {
            return writer.lastRecord();
        }

        @Override
        public void beforeWrite(long pageLsn) {
            if (wouldFlush(pageLsn)) {
                flush(pageLsn);
            }
        }

        @Override
        public boolean wouldFlush(long pageLsn) {
            return Lsn.before(flushed, pageLsn);
        }
    }

    /** A primary's. */
    record Inserted(WalInserter inserter) implements CheckpointWal {
        @Override
        public long moveRedo() {
            return inserter.moveRedo();
        }

        @Override
        public long insert(WalRecordBuilder record) {
            return inserter.insert(record);
        }

        @Override
        public void flush(long lsn) {
            inserter.flush(lsn);
        }

        @Override
        public long startOf(WalRecordBuilder record) {
            return record.startLsn();
        }

        @Override
        public void beforeWrite(long pageLsn) {
            if (wouldFlush(pageLsn)) {
                inserter.flush(pageLsn);
            }
        }

        @Override
        public boolean wouldFlush(long pageLsn) {
            return Lsn.before(inserter.flushedLsn(), pageLsn);
        }
    }
}
