package org.pgkernel.testkit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.function.Consumer;

/**
 * A scratch directory that the server's user can enter, removed on close, or when the JVM ends. Set
 * the system property {@code pgkernel.keep} to keep it, to look at what a failed test left.
 */
public final class WorkDirectory implements AutoCloseable {
    private final Path path;

    private WorkDirectory(Path path) {
        this.path = path;
    }

    /** Below {@code java.io.tmpdir}, mode 0711. */
    public static WorkDirectory create(String prefix) {
        return createIn(Path.of(System.getProperty("java.io.tmpdir")), prefix);
    }

    /** Below {@code parent}, mode 0711. */
    public static WorkDirectory createIn(Path parent, String prefix) {
        try {
            Path path = Files.createTempDirectory(parent, prefix);
            Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rwx--x--x"));
            WorkDirectory directory = new WorkDirectory(path);
            AtExit.DIRECTORIES.add(directory);
            return directory;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public Path path() {
        return path;
    }

    public Path resolve(String name) {
        return path.resolve(name);
    }

    @Override
    public void close() {
        // Listed until it is gone: the JVM may be about to end.
        if (AtExit.DIRECTORIES.contains(this)) {
            remove(FileTrees::delete);
            AtExit.DIRECTORIES.remove(this);
        }
    }

    void remove(Consumer<Path> remover) {
        if (System.getProperty("pgkernel.keep") == null) {
            remover.accept(path);
        } else {
            System.err.println("kept " + path);
        }
    }

    @Override
    public String toString() {
        return path.toString();
    }
}
