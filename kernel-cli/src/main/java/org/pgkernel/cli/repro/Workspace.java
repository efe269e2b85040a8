package org.pgkernel.cli.repro;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.stream.Stream;
import org.pgkernel.cli.UserException;
import org.pgkernel.testkit.FileTrees;

/**
 * Where an experiment's directories are: in memory (tmpfs) if there is room, as in the figures that
 * we compare with; removed at the end, also after Ctrl-C.
 */
final class Workspace implements AutoCloseable {
    private static final Path MEMORY = Path.of("/dev/shm");
    private static final long ENOUGH = 2L << 30;

    private final Path path;
    private final Thread remover;

    private Workspace(Path path, boolean keep) {
        this.path = path;
        remover =
                keep ? null : new Thread(() -> FileTrees.delete(path), "remove the work directory");
        if (remover != null) {
            Runtime.getRuntime().addShutdownHook(remover);
        }
    }

    /**
     * @param keep where the user wants it kept, or null
     */
    static Workspace open(Path keep) throws IOException {
        if (keep != null) {
            Files.createDirectories(keep);
            try (Stream<Path> entries = Files.list(keep)) {
                if (entries.findAny().isPresent()) {
                    throw new UserException(
                            "--keep names a directory that is not empty: file=" + keep);
                }
            }
            return new Workspace(keep.toAbsolutePath().normalize(), true);
        }
        boolean memory =
                Files.isDirectory(MEMORY)
                        && Files.isWritable(MEMORY)
                        && Files.getFileStore(MEMORY).getUsableSpace() > ENOUGH;
        Path parent = memory ? MEMORY : Path.of(System.getProperty("java.io.tmpdir"));
        Path path = Files.createTempDirectory(parent, "pgkernel-repro-");
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rwx--x--x"));
        return new Workspace(path, false);
    }

    Path path() {
        return path;
    }

    @Override
    public void close() {
        if (remover != null) {
            FileTrees.delete(path);
            Runtime.getRuntime().removeShutdownHook(remover);
        }
    }
}
