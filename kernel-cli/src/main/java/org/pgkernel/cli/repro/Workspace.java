package org.pgkernel.cli.repro;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.stream.Stream;
import org.pgkernel.cli.UserException;
import org.pgkernel.testkit.WorkDirectory;

/**
 * Where an experiment's directories are: in memory (tmpfs) if there is room, as in the figures that
 * we compare with; removed at the end, also after Ctrl-C.
 */
final class Workspace implements AutoCloseable {
    private final Path path;

    /** Null when the user keeps the data. */
    private final WorkDirectory scratch;

    private Workspace(Path path, WorkDirectory scratch) {
        this.path = path;
        this.scratch = scratch;
    }

    /**
     * @param keep where the user wants it kept, or null
     * @param places where it may be otherwise, the best first
     * @param needed bytes that the experiment will take
     * @throws UserException when no place has the room, or {@code keep} is not empty
     */
    static Workspace open(Path keep, Path[] places, long needed) throws IOException {
        if (keep != null) {
            return new Workspace(kept(keep.toAbsolutePath().normalize(), needed), null);
        }
        StringBuilder found = new StringBuilder();
        for (Path place : places) {
            boolean usable = Files.isDirectory(place) && Files.isWritable(place);
            if (usable && room(place) >= needed) {
                WorkDirectory scratch = WorkDirectory.createIn(place, "pgkernel-repro-");
                return new Workspace(scratch.path(), scratch);
            }
            found.append(found.isEmpty() ? "" : ", ")
                    .append(place)
                    .append(usable ? " has " + gigabytes(room(place)) : " cannot be used");
        }
        throw new UserException(
                "the experiment's data take about "
                        + gigabytes(needed)
                        + " and there is no room for them: "
                        + found
                        + "; name another place with --keep, or take fewer --tables");
    }

    /** The places for data that nobody keeps: memory, then the directory for temporary files. */
    static Path[] usualPlaces() {
        return new Path[] {Path.of("/dev/shm"), Path.of(System.getProperty("java.io.tmpdir"))};
    }

    private static Path kept(Path keep, long needed) throws IOException {
        if (Files.exists(keep)) {
            try (Stream<Path> entries = Files.list(keep)) {
                if (entries.findAny().isPresent()) {
                    throw new UserException(
                            "--keep names a directory that is not empty: file=" + keep);
                }
            }
        }
        Path existing = keep;
        while (!Files.exists(existing)) {
            existing = existing.getParent();
        }
        if (room(existing) < needed) {
            throw new UserException(
                    "the experiment's data take about "
                            + gigabytes(needed)
                            + ", and there are "
                            + gigabytes(room(existing))
                            + ": file="
                            + keep);
        }
        return Files.createDirectories(keep);
    }

    private static long room(Path place) throws IOException {
        return Files.getFileStore(place).getUsableSpace();
    }

    private static String gigabytes(long bytes) {
        return String.format(Locale.ROOT, "%.1f GB", bytes / 1e9);
    }

    Path path() {
        return path;
    }

    @Override
    public void close() {
        if (scratch != null) {
            scratch.close();
        }
    }
}
