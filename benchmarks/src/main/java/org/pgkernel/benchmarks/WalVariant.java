package org.pgkernel.benchmarks;

import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.wal.WalBackgroundWriter;
import org.pgkernel.wal.WalInserter;
import org.pgkernel.wal.WalRecordBuilder;

/**
 * A way to insert WAL in the complete format, records of 100 bytes, segments of 16 MiB, a ring of
 * 16 MiB. Old segments are recycled on the way, as a checkpoint would.
 */
abstract class WalVariant implements AutoCloseable {
    static final int SEGMENT = 16 << 20;
    static final int RING = 16 << 20;
    static final long START = SEGMENT + 40;

    /** One thread's part. */
    abstract static class Backend {
        private final UnsafeBuffer data = new UnsafeBuffer(new byte[8160]);

        /** Data of each record; 74 bytes make a record of 100. */
        int dataLength = 74;

        /** A record, built anew each time. */
        WalRecordBuilder record(WalRecordBuilder builder) {
            return builder.begin(10, 0, 700).data(data, 0, dataLength);
        }

        abstract void insert();

        /** Inserts, and returns when that is durable. */
        abstract void commit();
    }

    abstract Backend backend();

    /** How often the log was made durable. */
    abstract long syncs();

    @Override
    public abstract void close();

    /** Threads that wait for the log to be durable up to some place. */
    static final class Waiters {
        private static final class Waiter {
            final AtomicLong target = new AtomicLong(Long.MAX_VALUE);
            Thread thread;
        }

        private final List<Waiter> all = new CopyOnWriteArrayList<>();
        private volatile long reached = -1;

        Object register() {
            Waiter waiter = new Waiter();
            all.add(waiter);
            return waiter;
        }

        void await(Object registered, long target) {
            Waiter waiter = (Waiter) registered;
            waiter.thread = Thread.currentThread();
            waiter.target.set(target);
            while (reached < target) {
                LockSupport.park(this);
            }
            waiter.target.set(Long.MAX_VALUE);
        }

        void reached(long place) {
            reached = place;
            for (Waiter waiter : all) {
                if (waiter.target.get() <= place) {
                    LockSupport.unpark(waiter.thread);
                }
            }
        }
    }

    /** The kernel's: reservation, parallel copy, a leader who flushes for all. */
    static class Reservation extends WalVariant {
        final WalInserter inserter;
        private final Thread walWriter;
        private volatile boolean closing;
        private long kept;

        Reservation(Disk disk, Path directory) {
            inserter =
                    new WalInserter(
                            disk, directory.toString(), 1, SEGMENT, 7, START, 0, 0, 0, RING);
            WalBackgroundWriter writer =
                    new WalBackgroundWriter(
                            inserter,
                            WalBackgroundWriter.DEFAULT_DELAY,
                            WalBackgroundWriter.DEFAULT_FLUSH_AFTER,
                            System::nanoTime);
            walWriter =
                    new Thread(
                            () -> {
                                while (!closing) {
                                    if (writer.doWork() == 0) {
                                        writer.rest();
                                    }
                                    checkpoint();
                                }
                            },
                            "wal-writer");
            walWriter.start();
        }

        private void checkpoint() {
            if (inserter.flushedLsn() - kept > 4L * SEGMENT) {
                kept = inserter.flushedLsn();
                inserter.segments().removeBefore(kept, kept, 8);
            }
        }

        @Override
        Backend backend() {
            WalRecordBuilder builder = new WalRecordBuilder();
            return new Backend() {
                @Override
                void insert() {
                    inserter.insert(record(builder));
                }

                @Override
                void commit() {
                    flush(inserter.insert(record(builder)));
                }
            };
        }

        void flush(long end) {
            inserter.flush(end);
        }

        @Override
        long syncs() {
            return inserter.syncs();
        }

        @Override
        public void close() {
            closing = true;
            LockSupport.unpark(walWriter);
            Joining.join(walWriter);
            inserter.close();
        }
    }

    /** The same, but a thread of its own flushes when somebody asks. */
    static final class Flusher extends Reservation {
        private final Waiters waiters = new Waiters();
        private final ThreadLocal<Object> own = ThreadLocal.withInitial(waiters::register);
        private final AtomicLong wanted = new AtomicLong();
        private final Thread flusher;
        private volatile boolean ending;

        Flusher(Disk disk, Path directory) {
            super(disk, directory);
            flusher = new Thread(this::work, "flusher");
            flusher.start();
        }

        private void work() {
            for (int idle = 0; !ending; ) {
                if (wanted.get() > inserter.flushedLsn()) {
                    inserter.flush(inserter.insertLsn());
                    waiters.reached(inserter.flushedLsn());
                    idle = 0;
                } else if (idle++ < 50) {
                    Thread.onSpinWait();
                } else {
                    waiters.reached(inserter.flushedLsn());
                    LockSupport.parkNanos(this, 1_000_000);
                }
            }
        }

        @Override
        void flush(long end) {
            wanted.accumulateAndGet(end, Math::max);
            LockSupport.unpark(flusher);
            waiters.await(own.get(), end);
        }

        @Override
        public void close() {
            ending = true;
            Joining.join(flusher);
            super.close();
        }
    }
}
