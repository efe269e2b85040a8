package org.pgkernel.recovery;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.ServiceLoader;
import org.pgkernel.base.error.RefusedException;

/**
 * The modules that take part in one recovery, and what they bring: exactly one resource manager for
 * each of PostgreSQL's numbers, exactly one set of counters, any number of checkpoint participants.
 */
public final class RecoveryModules implements AutoCloseable {
    private final List<RecoveryModule> modules;

    /** Of their providers, in the same order. */
    private final List<String> names;

    private final ResourceManager[] managers = new ResourceManager[RmgrIds.COUNT];
    private final RecoveredCounters counters;
    private final List<CheckpointParticipant> participants;

    private RecoveryModules(
            List<RecoveryModule> modules,
            List<String> names,
            RecoveredCounters counters,
            List<CheckpointParticipant> participants) {
        this.modules = modules;
        this.names = names;
        this.counters = counters;
        this.participants = participants;
    }

    /**
     * Makes the modules of every provider that {@link ServiceLoader} finds.
     *
     * @throws RefusedException naming the resource managers that nobody brought, or that two
     *     modules did
     */
    public static RecoveryModules load(RecoveryEnvironment environment) {
        List<RecoveryModuleProvider> providers = new ArrayList<>();
        ServiceLoader.load(RecoveryModuleProvider.class).forEach(providers::add);
        return of(providers, environment);
    }

    /** The same with providers given by hand. */
    public static RecoveryModules of(
            List<RecoveryModuleProvider> providers, RecoveryEnvironment environment) {
        List<RecoveryModule> modules = new ArrayList<>();
        RecoveredCounters counters = null;
        List<CheckpointParticipant> participants = new ArrayList<>();
        try {
            for (RecoveryModuleProvider provider : providers) {
                RecoveryModule module = provider.create(environment);
                modules.add(module);
                if (module.counters() != null) {
                    if (counters != null) {
                        throw new RefusedException(
                                "two recovery modules supply the counters, the second is "
                                        + provider.name());
                    }
                    counters = module.counters();
                }
                participants.addAll(module.checkpointParticipants());
            }
            if (counters == null) {
                throw new RefusedException(
                        "no recovery module supplies the transaction counters: is kernel-xact on the path?");
            }
            participants.sort(Comparator.comparing(CheckpointParticipant::order));
            RecoveryModules all =
                    new RecoveryModules(
                            List.copyOf(modules),
                            providers.stream().map(RecoveryModuleProvider::name).toList(),
                            counters,
                            List.copyOf(participants));
            all.register();
            return all;
        } catch (RuntimeException e) {
            modules.forEach(RecoveryModule::close);
            throw e;
        }
    }

    private void register() {
        for (RecoveryModule module : modules) {
            for (ResourceManager manager : module.resourceManagers()) {
                int id = manager.id();
                if (id < 0 || id >= RmgrIds.COUNT || !RmgrIds.name(id).equals(manager.name())) {
                    throw new RefusedException(
                            "resource manager "
                                    + manager.name()
                                    + " has number "
                                    + id
                                    + ", which is that of "
                                    + RmgrIds.name(id));
                }
                if (managers[id] != null) {
                    throw new RefusedException(
                            "two recovery modules bring the resource manager " + manager.name());
                }
                managers[id] = manager;
            }
        }
        StringBuilder missing = new StringBuilder();
        for (int i = 0; i < managers.length; i++) {
            if (managers[i] == null) {
                missing.append(missing.isEmpty() ? "" : ", ").append(RmgrIds.name(i));
            }
        }
        if (!missing.isEmpty()) {
            throw new RefusedException(
                    "no module on the path brings the resource managers " + missing);
        }
    }

    /** The manager of this number, null when there is none. */
    public ResourceManager manager(int rmid) {
        return rmid >= 0 && rmid < managers.length ? managers[rmid] : null;
    }

    public RecoveredCounters counters() {
        return counters;
    }

    /** The module that the provider of this name made. */
    public RecoveryModule module(String provider) {
        int at = names.indexOf(provider);
        assert at >= 0 : provider;
        return modules.get(at);
    }

    /** In the order of their turns. */
    public List<CheckpointParticipant> participants() {
        return participants;
    }

    public void beforeRedo(RedoContext context) {
        for (RecoveryModule module : modules) {
            module.beforeRedo(context);
        }
    }

    public void afterRedo(RedoContext context) {
        for (RecoveryModule module : modules) {
            module.afterRedo(context);
        }
    }

    public void afterRecovery(RedoContext context) {
        for (RecoveryModule module : modules) {
            module.afterRecovery(context);
        }
    }

    /**
     * {@code Heap/INSERT+INIT}, as pg_waldump prints it; {@code Heap/UNKNOWN (F0)} for a type its
     * manager does not know. (PostgreSQL: xlog_outdesc.)
     */
    public String identify(int rmid, int info) {
        ResourceManager manager = manager(rmid);
        String type = manager == null ? null : manager.identify(info);
        return RmgrIds.name(rmid)
                + "/"
                + (type == null
                        ? "UNKNOWN (" + Integer.toHexString(info & 0xF0).toUpperCase() + ")"
                        : type);
    }

    @Override
    public void close() {
        modules.forEach(RecoveryModule::close);
    }
}
