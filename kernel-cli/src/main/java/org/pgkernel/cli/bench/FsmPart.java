package org.pgkernel.cli.bench;

/** The parts of {@code bench fsm}. */
enum FsmPart {
    TPCB("TPC-B-like transactions, synchronous_commit off"),
    COPY("COPY of pgbench_accounts from a CSV file into a new table, without WAL"),
    TABLES("many tables of 1 to 4 blocks"),
    SEARCH("search and record in the map");

    private final String title;

    FsmPart(String title) {
        this.title = title;
    }

    String title() {
        return title;
    }
}
