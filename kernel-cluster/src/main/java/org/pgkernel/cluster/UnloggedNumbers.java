package org.pgkernel.cluster;

import java.util.Arrays;
import org.pgkernel.recovery.PrimaryOptions;

/**
 * File numbers of the unlogged relations that were opened or created: nothing of their pages may
 * reach the log, hints neither. A number is entered before any of the relation's pages is read.
 * Thread-safe; asking takes no lock. All are of one database.
 */
final class UnloggedNumbers implements PrimaryOptions.UnloggedFilter {
    /** Sorted; replaced under this monitor. */
    private volatile int[] numbers = {};

    @Override
    public boolean isUnlogged(int spc, int db, int rel) {
        int[] now = numbers;
        return now.length > 0 && Arrays.binarySearch(now, rel) >= 0;
    }

    synchronized void add(int rel) {
        int at = Arrays.binarySearch(numbers, rel);
        if (at < 0) {
            int[] more = new int[numbers.length + 1];
            int place = -at - 1;
            System.arraycopy(numbers, 0, more, 0, place);
            more[place] = rel;
            System.arraycopy(numbers, place, more, place + 1, numbers.length - place);
            numbers = more;
        }
    }

    /** Its files are gone, its buffers too. */
    synchronized void remove(int rel) {
        int at = Arrays.binarySearch(numbers, rel);
        if (at >= 0) {
            int[] fewer = Arrays.copyOf(numbers, numbers.length - 1);
            System.arraycopy(numbers, at + 1, fewer, at, fewer.length - at);
            numbers = fewer;
        }
    }
}
