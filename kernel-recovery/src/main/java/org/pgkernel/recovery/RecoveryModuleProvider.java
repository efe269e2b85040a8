package org.pgkernel.recovery;

/** Found by ServiceLoader; listed in module-info and in META-INF/services. */
public interface RecoveryModuleProvider {
    /** Maven module name, for messages. */
    String name();

    RecoveryModule create(RecoveryEnvironment environment);
}
