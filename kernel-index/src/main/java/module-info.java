/** Index page formats and their redo. */
module org.pgkernel.index {
    requires transitive org.pgkernel.recovery;

    exports org.pgkernel.index;

    provides org.pgkernel.recovery.RecoveryModuleProvider with
            org.pgkernel.index.IndexModuleProvider;
}
