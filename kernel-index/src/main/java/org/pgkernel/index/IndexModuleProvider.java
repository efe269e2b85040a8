package org.pgkernel.index;

import java.util.List;
import org.pgkernel.recovery.RecoveryEnvironment;
import org.pgkernel.recovery.RecoveryModule;
import org.pgkernel.recovery.RecoveryModuleProvider;
import org.pgkernel.recovery.ResourceManager;

/**
 * Provides the resource managers Btree, Sequence and Generic, and by name only Hash, Gin, Gist,
 * SPGist and BRIN.
 */
public final class IndexModuleProvider implements RecoveryModuleProvider {
    @Override
    public String name() {
        return "kernel-index";
    }

    @Override
    public RecoveryModule create(RecoveryEnvironment environment) {
        return new IndexModule();
    }

    private static final class IndexModule implements RecoveryModule {
        @Override
        public List<ResourceManager> resourceManagers() {
            return List.of(
                    new BtreeResourceManager(),
                    UncoveredResourceManager.hash(),
                    UncoveredResourceManager.gin(),
                    UncoveredResourceManager.gist(),
                    new SequenceResourceManager(),
                    UncoveredResourceManager.spgist(),
                    UncoveredResourceManager.brin(),
                    new GenericResourceManager());
        }
    }
}
