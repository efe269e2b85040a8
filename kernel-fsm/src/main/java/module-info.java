/** Free space map, visibility map, and Storage redo. */
module org.pgkernel.fsm {
    requires transitive org.pgkernel.recovery;

    exports org.pgkernel.fsm;

    provides org.pgkernel.recovery.RecoveryModuleProvider with
            org.pgkernel.fsm.FsmRecovery;
}
