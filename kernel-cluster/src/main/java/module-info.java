/** A whole kernel over a data directory. */
module org.pgkernel.cluster {
    requires transitive org.pgkernel.recovery;
    requires transitive org.pgkernel.xact;
    requires transitive org.pgkernel.fsm;
    requires transitive org.pgkernel.heap;
    requires transitive org.pgkernel.index;

    exports org.pgkernel.cluster;

    uses org.pgkernel.recovery.RecoveryModuleProvider;
}
