package org.pgkernel.testkit;

/**
 * Which of the unsynced changes of one file, or of all names, a crash finds on the medium. How
 * dense losses are is drawn first, so that rare mixtures, all but one, say, come up often.
 */
final class Landing {
    private enum Kind {
        NOTHING,
        EVERYTHING,
        /** The first so many. */
        FIRST,
        /** Each change for itself, whole. */
        WHOLE,
        /** Each sector for itself. */
        SECTORS
    }

    private final Kind kind;
    private final Chance chance;

    /** Of 8, how many land. */
    private final int density;

    private int first;
    private final long journalEnd;

    private Landing(Kind kind, Chance chance, int count, long journalEnd) {
        this.kind = kind;
        this.chance = chance;
        this.density = 1 + chance.next(7);
        this.first = chance.next(count + 1);
        this.journalEnd = journalEnd;
    }

    /**
     * @param outcome {@link SimulatedDisk#LOSE_ALL}, {@link SimulatedDisk#KEEP_ALL}, or a seed
     * @param id of the file
     * @param count of its unsynced changes
     * @param journalEnd the last change of a length or name that lands, when they land in order;
     *     else -1
     */
    static Landing of(long outcome, long id, int count, long journalEnd) {
        Chance chance = new Chance(outcome, id);
        if (outcome == SimulatedDisk.LOSE_ALL) {
            return new Landing(Kind.NOTHING, chance, count, journalEnd);
        }
        if (outcome == SimulatedDisk.KEEP_ALL) {
            return new Landing(Kind.EVERYTHING, chance, count, journalEnd);
        }
        Kind[] kinds = Kind.values();
        return new Landing(kinds[chance.next(kinds.length)], chance, count, journalEnd);
    }

    /** For the next write: a bit for each sector of its chunk that lands. */
    int sectors() {
        return switch (kind) {
            case NOTHING -> 0;
            case EVERYTHING -> -1;
            case FIRST -> first-- > 0 ? -1 : 0;
            case WHOLE -> chance.next(8) < density ? -1 : 0;
            case SECTORS -> randomSectors();
        };
    }

    /** For the next length or name: whether it lands; the caller sees to what depends on it. */
    boolean lands(long order) {
        if (journalEnd >= 0) {
            return order <= journalEnd;
        }
        return switch (kind) {
            case NOTHING -> false;
            case EVERYTHING -> true;
            case FIRST -> first-- > 0;
            case WHOLE, SECTORS -> chance.next(8) < density;
        };
    }

    private int randomSectors() {
        int sectors = 0;
        long random = chance.nextLong();
        for (int sector = 0; sector < FileNode.CHUNK / FileNode.SECTOR; sector++) {
            if ((random >>> 3 * sector & 7) < density) {
                sectors |= 1 << sector;
            }
        }
        return sectors;
    }
}
