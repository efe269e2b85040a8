package org.pgkernel.testkit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.concurrent.locks.LockSupport;

/** Small helpers over directory trees. */
public final class FileTrees {
    private FileTrees() {}

    /**
     * The same for a tree in which others, soon to end, may still be making files: tries for about
     * a second, then gives up in silence.
     */
    public static void deleteInUse(Path root) {
        for (int attempt = 0; attempt < 50; attempt++) {
            try {
                delete(root);
                return;
            } catch (UncheckedIOException e) {
                LockSupport.parkNanos(20_000_000);
            }
        }
    }

    /**
     * Removes a tree without following symbolic links; a tree that does not exist, or vanishes
     * meanwhile, is fine.
     */
    public static void delete(Path root) {
        try {
            Files.walkFileTree(
                    root,
                    new SimpleFileVisitor<>() {
                        @Override
                        public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
                                throws IOException {
                            Files.deleteIfExists(file);
                            return FileVisitResult.CONTINUE;
                        }

                        @Override
                        public FileVisitResult visitFileFailed(Path file, IOException e)
                                throws IOException {
                            if (e instanceof NoSuchFileException) {
                                return FileVisitResult.CONTINUE;
                            }
                            throw e;
                        }

                        @Override
                        public FileVisitResult postVisitDirectory(Path directory, IOException e)
                                throws IOException {
                            if (e != null) {
                                throw e;
                            }
                            Files.deleteIfExists(directory);
                            return FileVisitResult.CONTINUE;
                        }
                    });
        } catch (NoSuchFileException e) {
            // Somebody else removed it first.
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
