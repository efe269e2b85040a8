/** Transaction status, ids, and the redo of Transaction, CLOG, MultiXact, CommitTs, Standby. */
module org.pgkernel.xact {
    requires transitive org.pgkernel.recovery;

    exports org.pgkernel.xact;

    provides org.pgkernel.recovery.RecoveryModuleProvider with
            org.pgkernel.xact.XactModuleProvider;
}
