package org.pgkernel.testkit;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Who runs the server. PostgreSQL refuses to run as root: root starts it through {@code setpriv} as
 * an ordinary user of the system ({@code postgres} if there is one, else {@code nobody}); anybody
 * else starts it as himself.
 */
final class ServerUser {
    private static final boolean ROOT = isRoot();
    private static ServerUser current;

    /** Null when the server runs as the user of this process. */
    private final String name;

    private final int uid;
    private final int gid;

    private ServerUser(String name, int uid, int gid) {
        this.name = name;
        this.uid = uid;
        this.gid = gid;
    }

    static boolean runningAsRoot() {
        return ROOT;
    }

    static synchronized ServerUser current() {
        if (current == null) {
            current = ROOT ? unprivileged() : new ServerUser(null, -1, -1);
        }
        return current;
    }

    /** The command as this user runs it. */
    List<String> command(List<String> command) {
        if (name == null) {
            return command;
        }
        List<String> all =
                new ArrayList<>(
                        List.of(
                                "setpriv",
                                "--reuid=" + uid,
                                "--regid=" + gid,
                                "--clear-groups",
                                "--"));
        all.addAll(command);
        return all;
    }

    /** Makes the tree this user's own, and checks that he can enter it. */
    void own(Path tree) {
        if (name == null) {
            return;
        }
        Processes.runChecked(List.of("chown", "-R", "-h", uid + ":" + gid, tree.toString()), 120);
        for (Path parent = tree.toAbsolutePath().getParent();
                parent != null;
                parent = parent.getParent()) {
            try {
                var permissions = Files.getPosixFilePermissions(parent);
                boolean owner =
                        Files.getAttribute(parent, "unix:uid") instanceof Integer id && id == uid;
                if (!owner && !permissions.contains(PosixFilePermission.OTHERS_EXECUTE)) {
                    throw new PostgresServerException(
                            "the server runs as user "
                                    + name
                                    + ", who may not enter this directory; choose another place for the data: file="
                                    + parent);
                }
            } catch (IOException e) {
                throw new PostgresServerException("cannot look at a directory: file=" + parent, e);
            }
        }
    }

    @Override
    public String toString() {
        return name == null ? System.getProperty("user.name") : name;
    }

    private static boolean isRoot() {
        try {
            return Files.getAttribute(Path.of("/proc/self"), "unix:uid") instanceof Integer id
                    && id == 0;
        } catch (IOException | UnsupportedOperationException e) {
            return "root".equals(System.getProperty("user.name"));
        }
    }

    private static ServerUser unprivileged() {
        return find("postgres")
                .or(() -> find("nobody"))
                .orElseThrow(
                        () ->
                                new PostgresServerException(
                                        "PostgreSQL does not run as root, and the system has neither a user postgres nor nobody"));
    }

    private static Optional<ServerUser> find(String name) {
        try {
            for (String line : Files.readAllLines(Path.of("/etc/passwd"))) {
                String[] fields = line.split(":");
                if (fields.length >= 4 && fields[0].equals(name)) {
                    return Optional.of(
                            new ServerUser(
                                    name,
                                    Integer.parseInt(fields[2]),
                                    Integer.parseInt(fields[3])));
                }
            }
            return Optional.empty();
        } catch (IOException | NumberFormatException e) {
            throw new PostgresServerException(
                    "cannot read the system's users: file=/etc/passwd", e);
        }
    }
}
