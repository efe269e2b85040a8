package org.pgkernel.recovery;

import java.util.HashSet;
import java.util.Set;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.Disk;

/**
 * Unlogged relations do not survive a crash: before redo everything of them but the init fork goes,
 * after redo the init fork is copied to the main fork. Works on files, not through the pool.
 * (PostgreSQL: ResetUnloggedRelations, reinit.c.)
 */
public final class UnloggedRelations {
    private static final int MAX_OID_DIGITS = 10;
    private static final String INIT = "_init";

    private UnloggedRelations() {}

    /**
     * Removes all forks but the init fork of each relation that has one.
     * (UNLOGGED_RELATION_CLEANUP)
     */
    public static void cleanUp(Disk disk, String dataDirectory) {
        for (String directory : databaseDirectories(disk, dataDirectory)) {
            Set<String> unlogged = new HashSet<>();
            for (String name : disk.list(directory)) {
                if (INIT.equals(fork(name))) {
                    unlogged.add(name.substring(0, digits(name)));
                }
            }
            if (unlogged.isEmpty()) {
                continue;
            }
            for (String name : disk.list(directory)) {
                String fork = fork(name);
                if (fork != null
                        && !INIT.equals(fork)
                        && unlogged.contains(name.substring(0, digits(name)))) {
                    disk.unlink(directory + "/" + name);
                }
            }
        }
    }

    /**
     * Copies each init fork, segment by segment, to the main fork; durable on return.
     * (UNLOGGED_RELATION_INIT)
     *
     * <p>A main fork may be there although {@link #cleanUp} was made before redo: an abort leaves
     * the first segment of what it created, cut to nothing, until the next checkpoint, and removes
     * the init fork at once; redo of the creation brings that back if the abort's record was not
     * yet durable. (PostgreSQL 15 would refuse to go on there: copy_file makes a new file only.)
     */
    public static void initialize(Disk disk, String dataDirectory) {
        cleanUp(disk, dataDirectory);
        for (String directory : databaseDirectories(disk, dataDirectory)) {
            for (String name : disk.list(directory)) {
                if (INIT.equals(fork(name))) {
                    String main = directory + "/" + name.replace(INIT, "");
                    Directories.copyFile(disk, directory + "/" + name, main);
                    Directories.syncFile(disk, main);
                }
            }
            disk.syncDirectory(directory);
        }
    }

    /** Every {@code base/N} and {@code pg_tblspc/M/PG_15_…/N}, absolute. */
    public static Set<String> databaseDirectories(Disk disk, String dataDirectory) {
        Set<String> all = new HashSet<>();
        addNumbered(disk, dataDirectory + "/base", all);
        for (String space : disk.list(dataDirectory + "/pg_tblspc")) {
            addNumbered(
                    disk,
                    dataDirectory
                            + "/pg_tblspc/"
                            + space
                            + "/"
                            + RelFileLocator.TABLESPACE_VERSION_DIRECTORY,
                    all);
        }
        return all;
    }

    private static void addNumbered(Disk disk, String parent, Set<String> all) {
        for (String name : disk.list(parent)) {
            if (digits(name) == name.length()) {
                all.add(parent + "/" + name);
            }
        }
    }

    private static int digits(String name) {
        int i = 0;
        while (i < name.length() && name.charAt(i) >= '0' && name.charAt(i) <= '9') {
            i++;
        }
        return i;
    }

    /**
     * The fork suffix of a relation file's name, empty for the main fork; null when it is no
     * permanent relation's file. (PostgreSQL: parse_filename_for_nontemp_relation.)
     */
    static String fork(String name) {
        int at = digits(name);
        if (at == 0 || at > MAX_OID_DIGITS) {
            return null;
        }
        String rest = name.substring(at);
        int dot = rest.indexOf('.');
        if (dot >= 0) {
            String segment = rest.substring(dot + 1);
            if (segment.isEmpty() || digits(segment) != segment.length()) {
                return null;
            }
            rest = rest.substring(0, dot);
        }
        return switch (rest) {
            case "", "_fsm", "_vm", INIT -> rest;
            default -> null;
        };
    }
}
