package org.pgkernel.smgr;

import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;

/** One relation's files. Thread-safe. Block numbers are unsigned; addresses are native, of a whole page. */
public final class SmgrRelation {
    SmgrRelation() {}

    public int spcOid() {
        throw new AssertionError("stub");
    }

    public int dbOid() {
        throw new AssertionError("stub");
    }

    public int relNumber() {
        throw new AssertionError("stub");
    }

    public RelFileLocator locator() {
        throw new AssertionError("stub");
    }

    /** True if the fork's first segment exists. (PostgreSQL: smgrexists; outside recovery the file is looked for anew.) */
    public boolean exists(ForkNumber fork) {
        throw new AssertionError("stub");
    }

    /** Creates the fork, empty; in redo an existing one is fine (and a missing database or tablespace directory is made). (PostgreSQL: smgrcreate, mdcreate, TablespaceCreateDbspace.) */
    public void create(ForkNumber fork, boolean isRedo) {
        throw new AssertionError("stub");
    }

    /** The remembered size, or the file's when nothing accurate is remembered; the answer is remembered. (PostgreSQL: smgrnblocks.) */
    public int nblocks(ForkNumber fork) {
        throw new AssertionError("stub");
    }

    /** The remembered size and whether it is accurate now, see {@link ForkSize}; touches no file. (PostgreSQL: smgrnblocks_cached.) */
    public long rememberedSize(ForkNumber fork) {
        throw new AssertionError("stub");
    }

    /** Forgets remembered sizes, of all forks. */
    public void forgetSizes() {}

    /** Writes a page at the fork's end or beyond (a hole reads as zeros). (PostgreSQL: smgrextend.) */
    public void extend(ForkNumber fork, int block, long address, boolean skipSync) {
        throw new AssertionError("stub");
    }

    /** Adds {@code count} zero pages from {@code block} on. */
    public void zeroExtend(ForkNumber fork, int block, int count, boolean skipSync) {
        throw new AssertionError("stub");
    }

    /** Reads a page; a block at or past the end is an error that names it. (In recovery PostgreSQL's mdread zeroes instead only with zero_damaged_pages or InRecovery: see the README.) */
    public void read(ForkNumber fork, int block, long address) {
        throw new AssertionError("stub");
    }

    /** Writes an existing page and queues a sync unless told not to. */
    public void write(ForkNumber fork, int block, long address, boolean skipSync) {
        throw new AssertionError("stub");
    }

    public void prefetch(ForkNumber fork, int block) {
        throw new AssertionError("stub");
    }

    /** Starts write-out of {@code count} blocks. (PostgreSQL: smgrwriteback.) */
    public void startWriteback(ForkNumber fork, int block, int count) {
        throw new AssertionError("stub");
    }

    /** Cuts one fork to {@code blocks}; the caller has dropped the buffers. Segments past the end stay, empty. (PostgreSQL: mdtruncate.) */
    public void truncate(ForkNumber fork, int blocks) {
        throw new AssertionError("stub");
    }

    /** Makes the fork durable now, every segment, inactive ones too. (PostgreSQL: smgrimmedsync.) */
    public void immediateSync(ForkNumber fork) {
        throw new AssertionError("stub");
    }
}
