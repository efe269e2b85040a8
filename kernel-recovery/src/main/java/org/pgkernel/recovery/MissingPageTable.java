package org.pgkernel.recovery;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.error.DamagedDataException;

/**
 * Pages that records referred to and that were not there. Before consistency that is no error: the
 * relation may be truncated or dropped by a record further on, whose redo then forgets the entries.
 * What is left when the data should be consistent is damage. One thread. (PostgreSQL:
 * invalid_page_tab, xlogutils.c.)
 */
final class MissingPageTable {
    private static final int NAMED_IN_MESSAGE = 10;

    private record Key(int spc, int db, int rel, int fork, int block) {}

    /** Why the page was no use, and which record wanted it first. */
    private record Entry(boolean present, long lsn) {}

    private final Map<Key, Entry> entries = new LinkedHashMap<>();

    boolean isEmpty() {
        return entries.isEmpty();
    }

    int size() {
        return entries.size();
    }

    /**
     * Remembers the page.
     *
     * @param present the page is there but all zeros
     * @throws DamagedDataException at once when {@code consistent}
     */
    void remember(
            int spc,
            int db,
            int rel,
            ForkNumber fork,
            int block,
            boolean present,
            long lsn,
            boolean consistent) {
        Key key = new Key(spc, db, rel, fork.ordinal(), block);
        if (consistent) {
            throw new DamagedDataException(
                    "WAL refers to a page that "
                            + reason(present)
                            + " although the data was consistent before: "
                            + place(key)
                            + " lsn="
                            + Lsn.format(lsn));
        }
        entries.putIfAbsent(key, new Entry(present, lsn));
    }

    /** (PostgreSQL: forget_invalid_pages.) */
    void forget(int spc, int db, int rel, ForkNumber fork, int firstBlock) {
        if (entries.isEmpty()) {
            return;
        }
        for (Iterator<Key> i = entries.keySet().iterator(); i.hasNext(); ) {
            Key k = i.next();
            if (k.rel == rel
                    && k.db == db
                    && k.spc == spc
                    && k.fork == fork.ordinal()
                    && Integer.compareUnsigned(k.block, firstBlock) >= 0) {
                i.remove();
            }
        }
    }

    /** (PostgreSQL: forget_invalid_pages_db.) */
    void forgetDatabase(int db) {
        if (!entries.isEmpty()) {
            entries.keySet().removeIf(k -> k.db == db);
        }
    }

    /**
     * The data should be consistent now: nothing may be left. (PostgreSQL: XLogCheckInvalidPages.)
     *
     * @param lsn how far replay came
     * @throws DamagedDataException naming the blocks
     */
    void check(long lsn) {
        if (entries.isEmpty()) {
            return;
        }
        StringBuilder text =
                new StringBuilder("WAL refers to pages that no later record accounts for: ");
        int named = 0;
        for (Map.Entry<Key, Entry> e : entries.entrySet()) {
            if (named == NAMED_IN_MESSAGE) {
                text.append("; and ").append(entries.size() - named).append(" more");
                break;
            }
            text.append(named++ == 0 ? "" : "; ");
            text.append(place(e.getKey())).append(' ').append(reason(e.getValue().present));
            text.append(" (record ending at ").append(Lsn.format(e.getValue().lsn)).append(')');
        }
        throw new DamagedDataException(text.append("; lsn=").append(Lsn.format(lsn)).toString());
    }

    private static String reason(boolean present) {
        return present ? "is uninitialized" : "does not exist";
    }

    private static String place(Key k) {
        return "rel="
                + new RelFileLocator(k.spc, k.db, k.rel)
                + " fork="
                + ForkNumber.of(k.fork)
                + " block="
                + BlockNumber.toString(k.block);
    }
}
