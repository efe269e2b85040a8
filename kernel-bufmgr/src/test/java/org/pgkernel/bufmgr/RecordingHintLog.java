package org.pgkernel.bufmgr;

import java.util.ArrayList;
import java.util.List;
import org.agrona.DirectBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;

/** A HintImageLog that notes what it is asked, and gives out LSNs. */
final class RecordingHintLog implements HintImageLog {
    /** An image that was logged. */
    record Image(String place, boolean standard, byte[] page, long lsn) {}

    final List<String> events = new ArrayList<>();
    final List<Image> images = new ArrayList<>();
    long redoPointer = 100;
    long nextLsn = 1000;

    /** What happens inside {@link #logImage}; may throw. */
    Runnable whileLogging = () -> {};

    private final ThreadLocal<Integer> delays = ThreadLocal.withInitial(() -> 0);

    @Override
    public synchronized void delayCheckpoint() {
        events.add("delay");
        if (delays.get() != 0) {
            throw new AssertionError("delayed twice");
        }
        delays.set(1);
    }

    @Override
    public synchronized void allowCheckpoint() {
        events.add("allow");
        if (delays.get() != 1) {
            throw new AssertionError("allowed without a delay");
        }
        delays.set(0);
    }

    @Override
    public synchronized long redoPointer() {
        if (delays.get() != 1) {
            throw new AssertionError("redo pointer asked while checkpoints may start");
        }
        return redoPointer;
    }

    @Override
    public long logImage(
            int spc,
            int db,
            int rel,
            ForkNumber fork,
            int block,
            DirectBuffer page,
            boolean standard) {
        whileLogging.run();
        synchronized (this) {
            if (delays.get() != 1) {
                throw new AssertionError("image logged while checkpoints may start");
            }
            events.add("image");
            byte[] copy = new byte[Page.SIZE];
            page.getBytes(0, copy);
            nextLsn += 8;
            images.add(
                    new Image(
                            Place.of(spc, db, rel, fork.ordinal(), block),
                            standard,
                            copy,
                            nextLsn));
            return nextLsn;
        }
    }
}
