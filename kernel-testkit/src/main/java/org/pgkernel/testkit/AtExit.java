package org.pgkernel.testkit;

import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** What must not outlive the JVM: programs and servers first, then the directories they ran on. */
final class AtExit {
    static final Set<PostgresServer> SERVERS = ConcurrentHashMap.newKeySet();
    static final Set<WorkDirectory> DIRECTORIES = ConcurrentHashMap.newKeySet();

    /** Programs under way, to the files with their output. */
    static final Map<Process, Path> PROGRAMS = new ConcurrentHashMap<>();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(AtExit::clean, "stop PostgreSQL servers"));
    }

    private AtExit() {}

    private static void clean() {
        PROGRAMS.forEach(
                (program, output) -> {
                    program.descendants().forEach(ProcessHandle::destroyForcibly);
                    program.destroyForcibly();
                    output.toFile().delete();
                });
        SERVERS.forEach(PostgresServer::killQuietly);
        // Other threads still run, and may create files while we delete.
        DIRECTORIES.forEach(directory -> directory.remove(FileTrees::deleteInUse));
    }
}
