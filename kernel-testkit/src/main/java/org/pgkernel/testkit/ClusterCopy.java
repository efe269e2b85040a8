package org.pgkernel.testkit;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.stream.Stream;

/**
 * Copies data directories.
 *
 * <p>A copy stands for itself: a {@code pg_wal} that is a symbolic link becomes a plain directory,
 * and tablespaces are copied to {@code TARGET.tblspc/OID}, to which the copy's {@code
 * pg_tblspc/OID} points. Every other symbolic link is copied as a link. Stretches of zeros become
 * holes. Directories get mode 0700 and files 0600.
 */
public final class ClusterCopy {
    private static final int CHUNK = 1 << 20;
    private static final int HOLE = 1 << 16;

    private ClusterCopy() {}

    /**
     * Where the copy's tablespaces lie: beside it, {@code TARGET.tblspc}; made only when there are
     * any.
     */
    public static Path tablespaces(Path target) {
        return target.resolveSibling(target.getFileName() + ".tblspc");
    }

    /**
     * Everything except {@code postmaster.pid}, which names a server that does not own the copy.
     */
    public static void copy(Path source, Path target) {
        copy(source, target, List.of("postmaster.pid"));
    }

    /**
     * Copies a data directory. Nobody may be writing to the source, or the caller knows that what
     * changes does not matter.
     *
     * @param target must not exist
     * @param except top-level names to leave out; of a directory named {@code NAME/*} only the
     *     contents are left out
     */
    public static void copy(Path source, Path target, List<String> except) {
        try {
            if (Files.exists(target)) {
                throw new PostgresServerException("the copy exists already: file=" + target);
            }
            createDirectory(target);
            ByteBuffer chunk = ByteBuffer.allocateDirect(CHUNK);
            try (Stream<Path> entries = Files.list(source)) {
                for (Path entry : (Iterable<Path>) entries.sorted()::iterator) {
                    String name = entry.getFileName().toString();
                    if (except.contains(name)) {
                        continue;
                    }
                    if (except.contains(name + "/*")) {
                        createDirectory(target.resolve(name));
                    } else if (name.equals("pg_tblspc")) {
                        copyTablespaces(entry, target, chunk);
                    } else if (name.equals("pg_wal")) {
                        copyTree(entry.toRealPath(), target.resolve(name), chunk);
                    } else {
                        copyTree(entry, target.resolve(name), chunk);
                    }
                }
            }
        } catch (IOException e) {
            throw new PostgresServerException("cannot copy a data directory: file=" + source, e);
        }
    }

    /**
     * Replaces the copy's WAL (segments and history files) by the source's; {@code archive_status}
     * is left empty.
     */
    public static void replaceWal(Path source, Path target) {
        Path wal = target.resolve("pg_wal");
        try {
            FileTrees.delete(wal);
            createDirectory(wal);
            createDirectory(wal.resolve("archive_status"));
            ByteBuffer chunk = ByteBuffer.allocateDirect(CHUNK);
            try (Stream<Path> entries = Files.list(source.resolve("pg_wal"))) {
                for (Path entry : (Iterable<Path>) entries::iterator) {
                    if (Files.isRegularFile(entry)) {
                        copyFile(entry, wal.resolve(entry.getFileName()), chunk);
                    }
                }
            }
        } catch (IOException e) {
            throw new PostgresServerException("cannot copy the WAL: file=" + source, e);
        }
    }

    private static void copyTablespaces(Path source, Path target, ByteBuffer chunk)
            throws IOException {
        Path links = target.resolve("pg_tblspc");
        createDirectory(links);
        Path homes = tablespaces(target);
        try (Stream<Path> entries = Files.list(source)) {
            for (Path entry : (Iterable<Path>) entries::iterator) {
                if (Files.isSymbolicLink(entry)) {
                    Files.createDirectories(homes);
                    Path home = homes.resolve(entry.getFileName());
                    copyTree(entry.toRealPath(), home, chunk);
                    Files.createSymbolicLink(
                            links.resolve(entry.getFileName()), home.toAbsolutePath());
                } else {
                    copyTree(entry, links.resolve(entry.getFileName()), chunk);
                }
            }
        }
    }

    private static void copyTree(Path source, Path target, ByteBuffer chunk) throws IOException {
        if (Files.isSymbolicLink(source)) {
            Files.createSymbolicLink(target, Files.readSymbolicLink(source));
        } else if (Files.isDirectory(source)) {
            createDirectory(target);
            try (Stream<Path> entries = Files.list(source)) {
                for (Path entry : (Iterable<Path>) entries::iterator) {
                    copyTree(entry, target.resolve(entry.getFileName()), chunk);
                }
            }
        } else if (Files.isRegularFile(source)) {
            copyFile(source, target, chunk);
        }
    }

    private static void copyFile(Path source, Path target, ByteBuffer chunk) throws IOException {
        try (FileChannel in = FileChannel.open(source, StandardOpenOption.READ);
                FileChannel out =
                        FileChannel.open(
                                target, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            Files.setPosixFilePermissions(target, PosixFilePermissions.fromString("rw-------"));
            long position = 0;
            while (true) {
                chunk.clear();
                while (chunk.hasRemaining() && in.read(chunk, position + chunk.position()) > 0) {}
                int length = chunk.position();
                if (length == 0) {
                    break;
                }
                for (int from = 0; from < length; from += HOLE) {
                    int to = Math.min(length, from + HOLE);
                    if (!isZero(chunk, from, to)) {
                        chunk.limit(to).position(from);
                        while (chunk.hasRemaining()) {
                            out.write(chunk, position + chunk.position());
                        }
                        chunk.clear();
                    }
                }
                position += length;
            }
            if (out.size() < position) {
                // The file ends in a hole: one byte fixes its length.
                out.write(ByteBuffer.allocate(1), position - 1);
            }
        } catch (NoSuchFileException e) {
            throw new IOException("a file vanished while it was copied", e);
        }
    }

    private static boolean isZero(ByteBuffer buffer, int from, int to) {
        int at = from;
        for (; at + Long.BYTES <= to; at += Long.BYTES) {
            if (buffer.getLong(at) != 0) {
                return false;
            }
        }
        for (; at < to; at++) {
            if (buffer.get(at) != 0) {
                return false;
            }
        }
        return true;
    }

    private static void createDirectory(Path directory) throws IOException {
        Files.createDirectory(directory);
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwx------"));
    }
}
