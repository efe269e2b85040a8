package org.pgkernel.fsm;

import java.util.List;
import org.pgkernel.recovery.RecoveryEnvironment;
import org.pgkernel.recovery.RecoveryModule;
import org.pgkernel.recovery.RecoveryModuleProvider;
import org.pgkernel.recovery.ResourceManager;

/** Brings Storage redo into recovery. */
public final class FsmRecovery implements RecoveryModuleProvider {
    @Override
    public String name() {
        return "kernel-fsm";
    }

    @Override
    public RecoveryModule create(RecoveryEnvironment environment) {
        List<ResourceManager> managers = List.of(new StorageRedo());
        return () -> managers;
    }
}
