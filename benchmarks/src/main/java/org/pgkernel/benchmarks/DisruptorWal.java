package org.pgkernel.benchmarks;

import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.WaitStrategy;
import com.lmax.disruptor.dsl.Disruptor;
import com.lmax.disruptor.dsl.ProducerType;
import java.nio.file.Path;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.wal.WalInserter;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.wal.WalWriter;

/**
 * The comparison: threads hand their records to a Disruptor, and one consumer gives each its place,
 * its back link and its sum, puts it on its pages, and makes a batch durable when it holds a
 * commit.
 *
 * <p>A thread learns its record's place only when the consumer has come to it; a kernel, whose
 * pages carry that LSN before their locks are released, would have to wait for it each time. This
 * is not counted here.
 */
final class DisruptorWal extends WalVariant {
    private static final int EVENTS = 4096;

    private static final class Event {
        final WalRecordBuilder builder = new WalRecordBuilder();
        boolean isCommit;
    }

    private final Disruptor<Event> disruptor;
    private final RingBuffer<Event> events;
    private final WalWriter writer;
    private final WalInserter segments;
    private final Waiters waiters = new Waiters();
    private volatile long syncs;
    private boolean wanted;
    private long kept;

    DisruptorWal(Disk disk, Path directory, int producers, WaitStrategy waiting) {
        writer = new WalWriter(disk, directory.toString(), 1, SEGMENT, 7, START, 0, 0);
        // Only for its removal of segments.
        segments =
                new WalInserter(disk, directory.toString(), 1, SEGMENT, 7, START, 0, 0, 0, 1 << 14);
        disruptor =
                new Disruptor<>(
                        Event::new,
                        EVENTS,
                        work -> new Thread(work, "wal-consumer"),
                        producers == 1 ? ProducerType.SINGLE : ProducerType.MULTI,
                        waiting);
        disruptor.handleEventsWith(this::consume);
        events = disruptor.start();
    }

    private void consume(Event event, long sequence, boolean isLastOfBatch) {
        long end = writer.append(event.builder);
        wanted |= event.isCommit;
        if (isLastOfBatch && wanted) {
            writer.flush();
            syncs++;
            wanted = false;
            waiters.reached(sequence);
        }
        if (end - kept > 4L * SEGMENT) {
            kept = end;
            segments.segments().removeBefore(end, end, 8);
        }
    }

    @Override
    Backend backend() {
        Object own = waiters.register();
        return new Backend() {
            @Override
            void insert() {
                put(false);
            }

            @Override
            void commit() {
                waiters.await(own, put(true));
            }

            private long put(boolean isCommit) {
                long sequence = events.next();
                Event event = events.get(sequence);
                record(event.builder);
                event.isCommit = isCommit;
                events.publish(sequence);
                return sequence;
            }
        };
    }

    @Override
    long syncs() {
        return syncs;
    }

    @Override
    public void close() {
        disruptor.shutdown();
        segments.close();
        writer.close();
    }
}
