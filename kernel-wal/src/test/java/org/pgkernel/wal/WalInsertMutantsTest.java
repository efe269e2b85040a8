package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.pgkernel.base.disk.Disk;

/** The checks find faults that were put in on purpose. */
class WalInsertMutantsTest {
    /** The flush believes that all is complete that was reserved. */
    static final class SlotsForgotten extends WalInserter.Parts {
        @Override
        InsertionSlots slots(InsertReservation reservation) {
            return new InsertionSlots(reservation, 16) {
                @Override
                long completeTo() {
                    return reservation.position();
                }
            };
        }
    }

    /** The back link is always taken from the length field. */
    static final class SecondWordForgotten extends WalInserter.Parts {
        @Override
        InsertReservation reservation(WalBytePositions positions, long start, long prevLsn) {
            return new InsertReservation(positions, start, start, prevLsn) {
                @Override
                void reserveTo(long end) {
                    int size = (int) Math.min(end - position(), LARGE - 8);
                    while (position() < end) {
                        reserve((int) Math.min(end - position(), size));
                    }
                }
            };
        }
    }

    /** The log is not made durable. */
    static final class SyncForgotten extends WalInserter.Parts {
        @Override
        WalSegmentOutput output(
                Disk disk, String directory, int timeline, int segmentSize, long system) {
            return new WalSegmentOutput(disk, directory, timeline, segmentSize, system) {
                @Override
                void sync() {}
            };
        }
    }

    /** What stands behind a log that ends with its page stays. */
    static final class ZerosForgotten extends WalInserter.Parts {
        @Override
        WalSegmentOutput output(
                Disk disk, String directory, int timeline, int segmentSize, long system) {
            return new WalSegmentOutput(disk, directory, timeline, segmentSize, system) {
                @Override
                void zeroPage(long zeros, long lsn) {}
            };
        }
    }

    @Test
    void aFlushThatDoesNotWaitForInsertersIsFound() {
        assertThrows(
                AssertionError.class,
                () -> {
                    for (long seed = 1; seed <= 200; seed++) {
                        try (WalLog log = new WalLog(1 << 15);
                                WalInserter inserter =
                                        log.inserter(log.start, 0, 1 << 14, new SlotsForgotten())) {
                            WalInserterProperties.assertReadBack(
                                    log,
                                    WalInserterProperties.insertFrom(inserter, 8, 60, 9_000, seed),
                                    seed);
                        }
                    }
                });
    }

    @Test
    void aWrongBackLinkBehindALongRecordIsFound() {
        assertThrows(
                AssertionError.class,
                () -> {
                    try (WalLog log = new WalLog(1 << 24);
                            WalInserter inserter =
                                    log.inserter(
                                            log.start, 0, 1 << 20, new SecondWordForgotten())) {
                        inserter.insert(WalLog.plain(9 << 20));
                        inserter.flush(inserter.insert(WalLog.plain(10)));
                        org.junit.jupiter.api.Assertions.assertEquals(2, log.read().size());
                    }
                });
    }

    @Test
    void aForgottenSyncIsFound() {
        assertThrows(
                AssertionError.class,
                () -> WalInsertCrashRun.search("wal-sync", 1, 20, new SyncForgotten()).run());
    }

    @Test
    void forgottenZerosAreFound() {
        try (WalLog log = new WalLog(1 << 16)) {
            int length = WalLog.PAGE - WalPageHeader.LONG_SIZE;
            try (WalInserter inserter = log.inserter(1 << 16)) {
                inserter.insert(WalLog.ofTotalLength(length));
                inserter.flush(inserter.insert(WalLog.plain(77)));
            }
            try (WalInserter inserter = log.inserter(log.start, 0, 1 << 16, new ZerosForgotten())) {
                inserter.flush(inserter.insert(WalLog.ofTotalLength(length)));
            }
            assertThrows(
                    AssertionError.class,
                    () -> org.junit.jupiter.api.Assertions.assertEquals(1, log.read().size()));
        }
    }
}
