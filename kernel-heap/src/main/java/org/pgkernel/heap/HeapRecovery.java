package org.pgkernel.heap;

import java.util.List;
import org.pgkernel.recovery.RecoveryEnvironment;
import org.pgkernel.recovery.RecoveryModule;
import org.pgkernel.recovery.RecoveryModuleProvider;
import org.pgkernel.recovery.ResourceManager;

/** Brings Heap and Heap2 redo into recovery. */
public final class HeapRecovery implements RecoveryModuleProvider {
    @Override
    public String name() {
        return "kernel-heap";
    }

    @Override
    public RecoveryModule create(RecoveryEnvironment environment) {
        int threshold = environment.fsmThreshold();
        List<ResourceManager> managers = List.of(new HeapRedo(threshold), new Heap2Redo(threshold));
        return () -> managers;
    }
}
