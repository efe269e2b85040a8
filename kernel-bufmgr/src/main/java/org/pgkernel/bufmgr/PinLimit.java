package org.pgkernel.bufmgr;

import org.pgkernel.base.error.RefusedException;

/**
 * How many buffers a backend may pin at once beyond the one that it cannot do without: its share of
 * the pool, were all backends there. Who pins many pages for speed (bulk extension, vectored reads)
 * asks first and makes do with what is granted. (PostgreSQL 16: LimitAdditionalPins.)
 */
final class PinLimit {
    /**
     * PostgreSQL's defaults: 100 connections, 22 workers of its own kinds, 5 auxiliary processes.
     */
    static final int DEFAULT_BACKENDS = 127;

    private final int nbuffers;

    /** Written by whoever configures the pool, read by all. */
    private volatile int backends = DEFAULT_BACKENDS;

    PinLimit(int nbuffers) {
        this.nbuffers = nbuffers;
    }

    void backends(int most) {
        if (most < 1) {
            throw new RefusedException("there is at least one backend max_backends=" + most);
        }
        backends = most;
    }

    /**
     * @param wanted at least 1
     * @param pinned buffers that the backend has pinned already
     * @return how many of them may be pinned, at least 1
     */
    int grant(int wanted, int pinned) {
        assert wanted >= 1 : "no pins asked for";
        return Math.max(1, Math.min(wanted, nbuffers / backends - pinned));
    }
}
