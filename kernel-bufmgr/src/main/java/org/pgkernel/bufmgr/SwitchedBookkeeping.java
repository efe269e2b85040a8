package org.pgkernel.bufmgr;

import org.pgkernel.smgr.StorageManager;

/**
 * A pool whose strategy's bookkeeping can be switched off and on again, <strong>for
 * benchmarks</strong>: so that its cost is measured in one pool, in the same memory. While it is
 * off, each page must be replaced by one of the same fork, and no fork may get longer; then what
 * was kept is right again when it is switched on. {@link #check} tells whether that is so. One
 * thread at a time.
 */
public final class SwitchedBookkeeping {
    private final DropStrategy strategy;
    private boolean on = true;
    private boolean checks;
    private int gone;

    /**
     * @param strategy {@code DLIST} or {@code ADAPTIVE}
     */
    public SwitchedBookkeeping(DropStrategy strategy) {
        this.strategy = strategy;
    }

    public BufferPool open(BufferPoolOptions options, StorageManager smgr) {
        DropParts parts =
                new DropParts() {
                    @Override
                    ResidencyTracker tracker(DropStrategy strategy, int nbuffers) {
                        return switch (strategy) {
                            case ADAPTIVE -> new Forks(nbuffers);
                            case DLIST -> new Lists(nbuffers);
                            case FULL_SCAN, LOOKUP -> super.tracker(strategy, nbuffers);
                        };
                    }
                };
        return BufferPool.open(options.withStrategy(strategy), smgr, lsn -> {}, parts);
    }

    public void turn(boolean on) {
        this.on = on;
    }

    /** From now on a page that is replaced by one of another relation is an error. */
    public void check(boolean checks) {
        this.checks = checks;
    }

    private void went(int rel) {
        gone = rel;
    }

    private void came(int rel) {
        if (rel != gone) {
            throw new IllegalStateException("relation " + gone + " lost a page to " + rel);
        }
    }

    private final class Forks extends ResidentForks {
        Forks(int nbuffers) {
            super(nbuffers, DropParts.FINGERPRINT_BITS);
        }

        @Override
        public void mapped(int buffer, int spc, int db, int rel, int fork, int block) {
            if (on) {
                super.mapped(buffer, spc, db, rel, fork, block);
            }
            if (checks) {
                came(rel);
            }
        }

        @Override
        public void unmapped(int buffer, int spc, int db, int rel, int fork) {
            if (on) {
                super.unmapped(buffer, spc, db, rel, fork);
            }
            if (checks) {
                went(rel);
            }
        }
    }

    private final class Lists extends BufferLists {
        Lists(int nbuffers) {
            super(nbuffers);
        }

        @Override
        public void mapped(int buffer, int spc, int db, int rel, int fork, int block) {
            if (on) {
                super.mapped(buffer, spc, db, rel, fork, block);
            }
            if (checks) {
                came(rel);
            }
        }

        @Override
        public void unmapped(int buffer, int spc, int db, int rel, int fork) {
            if (on) {
                super.unmapped(buffer, spc, db, rel, fork);
            }
            if (checks) {
                went(rel);
            }
        }
    }
}
