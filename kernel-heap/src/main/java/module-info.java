/** Heap tables: rows, who sees them, and the redo of Heap and Heap2. */
module org.pgkernel.heap {
    requires transitive org.pgkernel.recovery;
    requires transitive org.pgkernel.xact;
    requires transitive org.pgkernel.fsm;
    requires aircompressor.v3;

    exports org.pgkernel.heap;

    provides org.pgkernel.recovery.RecoveryModuleProvider with
            org.pgkernel.heap.HeapRecovery;
}
