package org.pgkernel.smgr;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;

/** A fork's paths, and the words by which errors name it. */
final class ForkName {
    private static final String[] FORK_NAMES = {"main", "fsm", "vm", "init"};

    private final SmgrRelation relation;
    private final ForkNumber fork;

    /** The first segment's path, built once; a race builds it twice, which is harmless. */
    private String path;

    ForkName(SmgrRelation relation, ForkNumber fork) {
        this.relation = relation;
        this.fork = fork;
    }

    /** The first segment's path. */
    String path() {
        String known = path;
        if (known == null) {
            known = relation.manager().dataDirectory() + "/" + relation.path(fork);
            path = known;
        }
        return known;
    }

    /** Segment {@code number}'s path, counted from 0. (PostgreSQL: _mdfd_segpath.) */
    String segmentPath(int number) {
        return number == 0 ? path() : path() + "." + number;
    }

    /** {@code rel=… fork=…}, where a message ends. */
    String place() {
        return "rel=" + relation + " fork=" + FORK_NAMES[fork.ordinal()];
    }

    String place(int block) {
        return place() + " block=" + BlockNumber.toString(block);
    }

    DamagedDataException pastTheEnd(int block, String why) {
        return new DamagedDataException(
                "the block is past the end, " + why + ": " + place(block) + " file=" + path());
    }

    DiskException missing(String segmentPath) {
        return new DiskException(
                "could not open a segment of " + place(), segmentPath, DiskException.ENOENT);
    }
}
