package org.pgkernel.cli;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFileAttributes;
import java.util.stream.Stream;
import org.pgkernel.testkit.ClusterCopy;

/**
 * The owner of a data directory that root recovers. PostgreSQL never runs as root and could not
 * open files that root made, so they are given to the owner. Anybody else gives nothing.
 */
final class FileOwner {
    /** Null when nothing is to be given. */
    private final PosixFileAttributes owner;

    private FileOwner(PosixFileAttributes owner) {
        this.owner = owner;
    }

    static FileOwner of(Path directory) {
        try {
            Object uid = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
            return new FileOwner(
                    Integer.valueOf(0).equals(uid)
                            ? Files.readAttributes(directory, PosixFileAttributes.class)
                            : null);
        } catch (IOException e) {
            throw new UserException("cannot tell the directory's owner: " + Sentences.of(e), e);
        }
    }

    /** Gives him a data directory with its tablespaces and WAL directory, wherever they lie. */
    void give(Path dataDirectory) {
        if (owner == null) {
            return;
        }
        try {
            giveTree(dataDirectory);
            giveTree(dataDirectory.resolve("pg_wal").toRealPath());
            Path tablespaces = ClusterCopy.tablespaces(dataDirectory);
            if (Files.isDirectory(tablespaces, LinkOption.NOFOLLOW_LINKS)) {
                giveTree(tablespaces);
            }
            try (Stream<Path> links = Files.list(dataDirectory.resolve("pg_tblspc"))) {
                for (Path link : (Iterable<Path>) links::iterator) {
                    giveTree(link.toRealPath());
                }
            }
        } catch (IOException e) {
            throw new UserException(
                    "cannot give the files to " + owner.owner() + ": " + Sentences.of(e), e);
        }
    }

    private void giveTree(Path root) throws IOException {
        Files.walkFileTree(
                root,
                new SimpleFileVisitor<>() {
                    @Override
                    public FileVisitResult preVisitDirectory(Path path, BasicFileAttributes found)
                            throws IOException {
                        return visitFile(path, found);
                    }

                    @Override
                    public FileVisitResult visitFile(Path path, BasicFileAttributes found)
                            throws IOException {
                        giveFile(path);
                        return FileVisitResult.CONTINUE;
                    }
                });
    }

    private void giveFile(Path path) throws IOException {
        var view =
                Files.getFileAttributeView(
                        path, PosixFileAttributeView.class, LinkOption.NOFOLLOW_LINKS);
        if (!view.readAttributes().owner().equals(owner.owner())) {
            view.setOwner(owner.owner());
            view.setGroup(owner.group());
        }
    }
}
