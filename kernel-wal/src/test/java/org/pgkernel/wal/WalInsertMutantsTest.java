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

    /** The slot is let go before the record's bytes are copied. */
    static final class SlotPublishedBeforeTheCopy extends WalInserter.Parts {
        @Override
        InsertionSlots slots(InsertReservation reservation) {
            return new InsertionSlots(reservation, 16) {
                @Override
                void progress(int slot, long position) {
                    release(slot);
                }
            };
        }
    }

    /** Pages do not say that they continue a record. */
    static final class ContinuationForgotten extends WalInserter.Parts {
        @Override
        WalRing ring(
                WalBytePositions positions, int timeline, long system, long missing, int size) {
            return new WalRing(positions, timeline, system, missing, size) {
                @Override
                void beginPage(long page, int remaining) {
                    super.beginPage(page, 0);
                }
            };
        }
    }

    /** The page over a missing continuation does not say so. */
    static final class OverwriteFlagForgotten extends WalInserter.Parts {
        @Override
        WalRing ring(
                WalBytePositions positions, int timeline, long system, long missing, int size) {
            return new WalRing(positions, timeline, system, 0, size);
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
    void aSlotPublishedBeforeTheCopyIsFound() {
        assertThrows(
                AssertionError.class,
                () -> {
                    for (long seed = 1; seed <= 200; seed++) {
                        try (WalLog log = new WalLog(1 << 15);
                                WalInserter inserter =
                                        log.inserter(
                                                log.start,
                                                0,
                                                1 << 14,
                                                new SlotPublishedBeforeTheCopy())) {
                            WalInserterProperties.assertReadBack(
                                    log,
                                    WalInserterProperties.insertFrom(inserter, 8, 60, 9_000, seed),
                                    seed);
                        }
                    }
                });
    }

    @Test
    void aForgottenContinuationIsFound() {
        assertThrows(
                AssertionError.class,
                () -> {
                    try (WalLog log = new WalLog(1 << 15);
                            WalInserter inserter =
                                    log.inserter(
                                            log.start, 0, 1 << 14, new ContinuationForgotten())) {
                        WalInserterProperties.assertReadBack(
                                log, WalInserterProperties.insertFrom(inserter, 1, 9, 9_000, 1), 1);
                    }
                });
    }

    @Test
    void aForgottenOverwriteFlagIsFound() {
        assertThrows(
                AssertionError.class,
                () ->
                        WalInsertCrashRun.search(
                                        "wal-overwrite", 1, 40, new OverwriteFlagForgotten())
                                .outcomes(6)
                                .run());
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
