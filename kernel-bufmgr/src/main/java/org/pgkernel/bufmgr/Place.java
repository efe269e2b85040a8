package org.pgkernel.bufmgr;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.RelFileLocator;

/** The end of an error's sentence: which page it is about. */
final class Place {
    private static final String[] FORKS = {"main", "fsm", "vm", "init"};

    private Place() {}

    static String fork(int fork) {
        return FORKS[fork];
    }

    static String of(int spc, int db, int rel, int fork, int block) {
        return "rel="
                + new RelFileLocator(spc, db, rel)
                + " fork="
                + FORKS[fork]
                + " block="
                + BlockNumber.toString(block);
    }
}
