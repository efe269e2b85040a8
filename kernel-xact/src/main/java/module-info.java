/** Transaction status, ids, and the redo of Transaction, CLOG, MultiXact, CommitTs, Standby. */
module org.pgkernel.xact {
    requires transitive org.pgkernel.recovery;

    exports org.pgkernel.xact;
}
