package org.pgkernel.wal;

import java.util.concurrent.atomic.AtomicLongArray;
import org.pgkernel.base.error.KernelStoppedException;

/**
 * Where the next record goes, and where the last one began, in one word, so that one CAS reserves
 * room and knows {@code xl_prev}.
 *
 * <pre>
 *   63                                     20 19                 0
 *   +----------------------------------------+-------------------+
 *   | position since the start, in 8 bytes   | length of the     |
 *   |                                        | last record, / 8  |
 *   +----------------------------------------+-------------------+
 * </pre>
 *
 * Length 0: the last record's start is in the second word. That is so at the beginning, after a
 * record of 8 MiB or more, and after a segment switch, whose unused rest counts as room taken.
 *
 * <p>Ordering. The first word only grows, hence a CAS that succeeds saw the newest state. The
 * second word is written only while all insertion slots are held, before the first word; it is read
 * only while one slot is held. So no reader sees a first word and a second one of different times.
 * (PostgreSQL: ReserveXLogInsertLocation, CurrBytePos and PrevBytePos, xlog.c.)
 */
class InsertReservation {
    /** Records from this aligned size on do not fit the length field. */
    static final long LARGE = 8L << 20;

    private static final int LENGTH_BITS = 20;
    private static final long LENGTH_MASK = (1L << LENGTH_BITS) - 1;
    private static final long MAX_UNITS = (1L << 64 - LENGTH_BITS) - 1;

    /** Which element is the word; the others keep it alone in its cache lines. */
    private static final int WORD = 16;

    private final WalBytePositions positions;
    private final long base;
    private final AtomicLongArray words = new AtomicLongArray(2 * WORD);

    /** Second word: LSN. Written under all slots, read under one. */
    private long previousStart;

    /**
     * @param base position that the first word counts from
     * @param start position of the first record
     */
    InsertReservation(WalBytePositions positions, long base, long start, long previousStart) {
        assert (start - base & 7) == 0 && start >= base : "start " + start + " base " + base;
        this.positions = positions;
        this.base = base;
        this.previousStart = previousStart;
        words.set(WORD, (start - base >> 3) << LENGTH_BITS);
    }

    /**
     * Takes {@code size} bytes. The caller holds a slot. @return the word before, for the two below
     */
    long reserve(int size) {
        assert (size & 7) == 0 && size > 0 && size < LARGE : "size " + size;
        long units = size >> 3;
        long word;
        long next;
        do {
            word = words.get(WORD);
            long to = (word >>> LENGTH_BITS) + units;
            if (to > MAX_UNITS) {
                throw exhausted();
            }
            next = to << LENGTH_BITS | units;
        } while (!words.weakCompareAndSetVolatile(WORD, word, next));
        return word;
    }

    /** Position that a word told. */
    long position(long word) {
        return base + ((word >>> LENGTH_BITS) << 3);
    }

    /**
     * LSN of the record before the one at {@code startLsn}, for which {@link #reserve} gave the
     * word. The caller still holds the slot.
     */
    long previousStart(long word, long startLsn) {
        long length = (word & LENGTH_MASK) << 3;
        if (length == 0) {
            return previousStart;
        }
        long page = startLsn & -WalPageHeader.PAGE_SIZE;
        long near = startLsn - length;
        return near >= page + WalPageHeader.sizeAt(page, positions.segmentSize)
                ? near
                : positions.startLsn(position(word) - length);
    }

    /** Position where the next record goes. Any thread, any time. */
    long position() {
        return position(words.get(WORD));
    }

    /** Start of the last record. The caller holds all slots. */
    long lastRecord() {
        long word = words.get(WORD);
        return previousStart(word, positions.startLsn(position(word)));
    }

    /**
     * Takes everything up to {@code end} for the record that begins at the present position. The
     * caller holds all slots.
     */
    void reserveTo(long end) {
        long units = end - base >> 3;
        if (units > MAX_UNITS) {
            throw exhausted();
        }
        previousStart = positions.startLsn(position());
        words.set(WORD, units << LENGTH_BITS);
    }

    private static KernelStoppedException exhausted() {
        return new KernelStoppedException(
                "128 TiB of WAL were written since the kernel was opened; it must be opened anew");
    }
}
