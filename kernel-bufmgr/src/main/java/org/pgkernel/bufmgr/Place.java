package org.pgkernel.bufmgr;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;

/** The end of an error's sentence: which page it is about. */
final class Place {
    private Place() {}

    static String of(int spc, int db, int rel, int fork, int block) {
        return "rel=" + new RelFileLocator(spc, db, rel) + " fork=" + ForkNumber.of(fork) + " block=" + BlockNumber.toString(block);
    }
}
