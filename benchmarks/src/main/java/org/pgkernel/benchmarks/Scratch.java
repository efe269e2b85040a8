package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.pgkernel.testkit.FileTrees;

/** A directory in memory if there is one, that the server's user may enter. */
final class Scratch implements AutoCloseable {
    private final Path path;

    Scratch() throws IOException {
        Path memory = Path.of("/dev/shm");
        Path parent =
                Files.isWritable(memory) ? memory : Path.of(System.getProperty("java.io.tmpdir"));
        path = Files.createTempDirectory(parent, "pgkernel-jmh-");
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rwx--x--x"));
    }

    Path resolve(String name) {
        return path.resolve(name);
    }

    @Override
    public void close() {
        FileTrees.delete(path);
    }
}
