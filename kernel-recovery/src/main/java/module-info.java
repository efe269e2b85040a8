import org.pgkernel.recovery.CoreRecoveryModuleProvider;
import org.pgkernel.recovery.RecoveryModuleProvider;

/** Redo, recovery control, and the seams through which the other modules take part. */
module org.pgkernel.recovery {
    requires transitive org.pgkernel.base;
    requires transitive org.pgkernel.smgr;
    requires transitive org.pgkernel.wal;
    requires transitive org.pgkernel.bufmgr;

    exports org.pgkernel.recovery;

    uses RecoveryModuleProvider;

    provides RecoveryModuleProvider with
            CoreRecoveryModuleProvider;
}
