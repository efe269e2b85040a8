package org.pgkernel.cli.bench;

/**
 * Pages in the order in which they are used. A page is a number here; what it is called is kept
 * beside.
 */
final class Trace {
    /** In {@link #scans}: used by nobody's ring. */
    static final byte NO_SCAN = 0;

    static final byte SCAN = 1;

    /** The first page of a scan, which takes a new ring. */
    static final byte SCAN_BEGINS = 2;

    /** What a page is called. */
    record Page(int spc, int db, int rel, int fork, int block) {}

    private final String name;
    private final Page[] pages;
    private final int[] uses;

    /** For each use whether a scan made it; null if there are none. */
    private final byte[] scans;

    /** How many blocks each scan has. */
    private final int scanBlocks;

    Trace(String name, Page[] pages, int[] uses) {
        this(name, pages, uses, null, 0);
    }

    /**
     * @param scans one byte a use, or null
     * @param scanBlocks blocks of a scan: one of more than a quarter of the pool uses a ring
     */
    Trace(String name, Page[] pages, int[] uses, byte[] scans, int scanBlocks) {
        this.name = name;
        this.pages = pages;
        this.uses = uses;
        this.scans = scans;
        this.scanBlocks = scanBlocks;
    }

    String name() {
        return name;
    }

    int length() {
        return uses.length;
    }

    /** Number of the page that is used at this place. */
    int use(int at) {
        return uses[at];
    }

    Page page(int number) {
        return pages[number];
    }

    byte scan(int at) {
        return scans == null ? NO_SCAN : scans[at];
    }

    int scanBlocks() {
        return scanBlocks;
    }

    /** Numbers of pages are below this. */
    int numbers() {
        return pages.length;
    }

    /** How many different pages are used. */
    int footprint() {
        boolean[] used = new boolean[pages.length];
        int count = 0;
        for (int page : uses) {
            if (!used[page]) {
                used[page] = true;
                count++;
            }
        }
        return count;
    }
}
