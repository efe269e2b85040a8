package org.pgkernel.it;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WorkDirectory;

/** Fresh clusters to copy, so that initdb runs once for each kind. Removed when the JVM ends. */
final class Templates {
    private static final Map<String, Path> MADE = new HashMap<>();
    private static WorkDirectory work;

    private Templates() {}

    static synchronized Path of(
            PostgresBinaries binaries, boolean checksums, int walSegmentMegabytes) {
        if (work == null) {
            work = WorkDirectory.create("pgkernel-templates");
        }
        return MADE.computeIfAbsent(
                binaries.version() + "-" + checksums + "-" + walSegmentMegabytes,
                name -> {
                    Path directory = work.resolve(name);
                    PostgresServer.initdb(binaries, directory, checksums, walSegmentMegabytes);
                    return directory;
                });
    }
}
