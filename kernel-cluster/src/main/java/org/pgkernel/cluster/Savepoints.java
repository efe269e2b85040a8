package org.pgkernel.cluster;

import java.util.ArrayList;
import java.util.List;
import org.pgkernel.base.error.RefusedException;

/**
 * The names of a transaction's savepoints, the latest last; a name may come twice, then it means
 * the later one.
 */
final class Savepoints {
    private final List<String> names = new ArrayList<>();

    void add(String name) {
        names.add(name);
    }

    /** Level of the savepoint: 1 for the first. */
    int level(String name) {
        int at = names.lastIndexOf(name);
        if (at < 0) {
            throw new RefusedException("there is no savepoint of this name: name=" + name);
        }
        return at + 1;
    }

    /** Forgets those from the level on. */
    void cutTo(int level) {
        while (names.size() >= level) {
            names.removeLast();
        }
    }

    void clear() {
        names.clear();
    }
}
