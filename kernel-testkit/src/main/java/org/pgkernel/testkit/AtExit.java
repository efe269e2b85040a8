package org.pgkernel.testkit;

import java.io.UncheckedIOException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** What must not outlive the JVM: servers first, then the directories they ran on. */
final class AtExit {
    static final Set<PostgresServer> SERVERS = ConcurrentHashMap.newKeySet();
    static final Set<WorkDirectory> DIRECTORIES = ConcurrentHashMap.newKeySet();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(AtExit::clean, "stop PostgreSQL servers"));
    }

    private AtExit() {}

    private static void clean() {
        SERVERS.forEach(PostgresServer::killQuietly);
        DIRECTORIES.forEach(AtExit::remove);
    }

    /** Other threads still run, and may create files while we delete: a few attempts, then it stays. */
    private static void remove(WorkDirectory directory) {
        for (int attempt = 0; attempt < 5; attempt++) {
            try {
                directory.remove();
                return;
            } catch (UncheckedIOException e) {
                // Try again.
            }
        }
    }
}
