package org.pgkernel.xact;

import org.pgkernel.recovery.RecoveryEnvironment;
import org.pgkernel.recovery.RecoveryModule;
import org.pgkernel.recovery.RecoveryModuleProvider;

/**
 * Provides the transaction logs and their resource managers: Transaction, CLOG, MultiXact, Standby,
 * CommitTs.
 */
public final class XactModuleProvider implements RecoveryModuleProvider {
    @Override
    public String name() {
        return "kernel-xact";
    }

    @Override
    public RecoveryModule create(RecoveryEnvironment environment) {
        return new XactModule(environment);
    }
}
