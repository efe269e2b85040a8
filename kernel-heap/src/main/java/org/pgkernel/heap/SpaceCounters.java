package org.pgkernel.heap;

/**
 * How new rows, and new versions that left their page, found a page. One thread counts; another one
 * may read when that has ended.
 */
public final class SpaceCounters {
    long rows;
    long pagesTried;
    long pagesAdded;
    long searches;

    /** Rows, or rows at once on a page, that looked for a page. */
    public long rows() {
        return rows;
    }

    /** Pages that were locked to look at their room. */
    public long pagesTried() {
        return pagesTried;
    }

    /** Pages by which relations grew. */
    public long pagesAdded() {
        return pagesAdded;
    }

    /** Questions to the free space map, or to what stands for it. */
    public long searches() {
        return searches;
    }

    public void add(SpaceCounters other) {
        rows += other.rows;
        pagesTried += other.pagesTried;
        pagesAdded += other.pagesAdded;
        searches += other.searches;
    }
}
