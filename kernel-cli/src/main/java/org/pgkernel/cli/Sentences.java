package org.pgkernel.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.testkit.PostgresServerException;

/** Failures in the words that a user reads. */
public final class Sentences {
    private Sentences() {}

    /** The sentence of a failed command; a failure of no known kind is called an internal error. */
    static String of(Exception failure) {
        return switch (failure) {
            case KernelException e -> e.getMessage();
            case UserException e -> e.getMessage();
            case PostgresServerException e ->
                    e.getCause() instanceof IOException cause
                            ? e.getMessage() + " (" + of(cause) + ")"
                            : e.getMessage();
            case UncheckedIOException e -> of(e.getCause());
            default -> "internal error: " + failure + " (PGKERNEL_TRACE=1 shows where)";
        };
    }

    /** What went wrong with which file: the JDK's own messages often name the file only. */
    public static String of(IOException failure) {
        return switch (failure) {
            case NoSuchFileException e -> "there is no such file or directory: file=" + e.getFile();
            case FileAlreadyExistsException e -> "it exists already: file=" + e.getFile();
            case AccessDeniedException e -> "permission denied: file=" + e.getFile();
            case NotDirectoryException e -> "it is not a directory: file=" + e.getFile();
            case DirectoryNotEmptyException e -> "it is not empty: file=" + e.getFile();
            case FileSystemException e when e.getReason() != null ->
                    e.getReason() + ": file=" + e.getFile();
            default -> String.valueOf(failure.getMessage());
        };
    }
}
