package org.pgkernel.bufmgr;

/** Keeps nothing, for FULL_SCAN and LOOKUP; the allocator does not even call it. */
final class Untracked implements ResidencyTracker {
    static final Untracked INSTANCE = new Untracked();

    private Untracked() {}

    @Override
    public void mapped(int buffer, int spc, int db, int rel, int fork, int block) {}

    @Override
    public void unmapped(int buffer, int spc, int db, int rel, int fork) {}

    @Override
    public void release() {}
}
