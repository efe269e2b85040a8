package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.concurrent.atomic.AtomicIntegerArray;
import org.jetbrains.lincheck.LincheckAssertionError;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.StressOptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * WAL-13, WAL-14: reservations are as if made at one moment each, back links included, also beside
 * records that take all slots; and what the slots call complete is in the ring.
 *
 * <p>Sizes are in units of 8 bytes. A record is large here from the fourth size on, so that few
 * steps reach the second word.
 */
@Timeout(300)
class InsertionLincheckTest {
    private static final int SEGMENT = 1 << 20;

    /** The words and nothing else. */
    @Param(name = "units", gen = IntGen.class, conf = "1:3")
    public static class Words {
        private final WalBytePositions positions = new WalBytePositions(SEGMENT);
        final InsertReservation reservation = reservation(positions);

        InsertReservation reservation(WalBytePositions positions) {
            return new InsertReservation(positions, 0, 0, 777);
        }

        @Operation
        public String reserve(@Param(name = "units") int units) {
            long word = reservation.reserve(units * 8);
            long start = positions.startLsn(reservation.position(word));
            return start + " after " + reservation.previousStart(word, start);
        }

        @Operation
        public long position() {
            return reservation.position();
        }
    }

    /** Words, slots and the bytes that they speak of. */
    @Param(name = "units", gen = IntGen.class, conf = "1:4")
    public static class Insertion {
        private static final int LARGE = 4;

        private final WalBytePositions positions = new WalBytePositions(SEGMENT);
        private final InsertReservation reservation = new InsertReservation(positions, 0, 0, 777);
        private final InsertionSlots slots = slots(reservation);
        private final AtomicIntegerArray arrived = new AtomicIntegerArray(64);

        InsertionSlots slots(InsertReservation reservation) {
            return new InsertionSlots(reservation, 2);
        }

        @Operation
        public String insert(@Param(name = "units") int units) {
            boolean alone = units >= LARGE;
            int slot = alone ? slots.acquireAll() : slots.acquire();
            long position;
            long previous;
            if (alone) {
                position = reservation.position();
                previous = reservation.lastRecord();
                reservation.reserveTo(position + units * 8L);
            } else {
                long word = reservation.reserve(units * 8);
                position = reservation.position(word);
                previous = reservation.previousStart(word, positions.startLsn(position));
            }
            slots.progress(slot, position);
            for (int i = 0; i < units; i++) {
                arrived.set((int) (position / 8) + i, 1);
            }
            if (alone) {
                slots.releaseAll();
            } else {
                slots.release(slot);
            }
            return positions.startLsn(position) + " after " + previous;
        }

        /** Bytes that are called complete and are not there. */
        @Operation
        public int missing() {
            long complete = slots.completeTo();
            int missing = 0;
            for (int i = 0; i < complete / 8; i++) {
                missing += 1 - arrived.get(i);
            }
            return missing;
        }
    }

    /** The back link is read before the room is taken. */
    public static class StaleBackLink extends Words {
        @Override
        InsertReservation reservation(WalBytePositions positions) {
            return new InsertReservation(positions, 0, 0, 777) {
                private long last = 777;

                @Override
                long reserve(int size) {
                    last = positions.startLsn(position());
                    return super.reserve(size);
                }

                @Override
                long previousStart(long word, long startLsn) {
                    return last;
                }
            };
        }
    }

    /** The slot is let go before the bytes are copied. */
    public static class SlotPublishedBeforeTheCopy extends Insertion {
        @Override
        InsertionSlots slots(InsertReservation reservation) {
            return new InsertionSlots(reservation, 2) {
                @Override
                void progress(int slot, long position) {
                    super.release(slot);
                }
            };
        }
    }

    private static ModelCheckingOptions modelChecking() {
        return new ModelCheckingOptions()
                .iterations(12)
                .invocationsPerIteration(500)
                .threads(2)
                .actorsBefore(1)
                .actorsPerThread(2)
                .actorsAfter(1);
    }

    private static void stress(Class<?> structure) {
        new StressOptions()
                .iterations(8)
                .invocationsPerIteration(500)
                .threads(3)
                .actorsPerThread(3)
                .check(structure);
    }

    @Test
    void reservationsAreLinearizable() {
        modelChecking().check(Words.class);
        stress(Words.class);
    }

    @Test
    void insertionsAreLinearizableAndNothingIncompleteIsCalledComplete() {
        modelChecking().check(Insertion.class);
        stress(Insertion.class);
    }

    @Test
    void aBackLinkReadTooEarlyIsFound() {
        assertThrows(
                LincheckAssertionError.class, () -> modelChecking().check(StaleBackLink.class));
    }

    @Test
    void aSlotPublishedBeforeTheCopyIsFound() {
        assertThrows(
                LincheckAssertionError.class,
                () -> modelChecking().check(SlotPublishedBeforeTheCopy.class));
    }
}
