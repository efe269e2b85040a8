package org.pgkernel.testkit;

import java.io.BufferedInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.ZipEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.tukaani.xz.XZInputStream;

/**
 * The programs of one PostgreSQL release, unpacked from an "embedded binaries" jar into a cache
 * directory.
 *
 * <p>The cache lies where an unprivileged user may run it: {@code ~/.cache/pgkernel} for an
 * ordinary user; for root, whose home others cannot enter, a directory below {@code java.io.tmpdir}
 * that must belong to root. The system property {@code pgkernel.cache} names another place. A
 * release is unpacked beside its final name and renamed, under a file lock, so that any number of
 * processes may ask at once; a list of its files, checked at each use, notices a cache that
 * somebody thinned out, and unpacks anew.
 *
 * <p>Linux on x86-64 only.
 */
public final class PostgresBinaries {
    /** Jar files with further releases, separated as a class path is. */
    public static final String JARS_PROPERTY = "pgkernel.postgres.jars";

    /** Overrides the cache directory. */
    public static final String CACHE_PROPERTY = "pgkernel.cache";

    private static final String RESOURCE = "postgres-linux-x86_64.txz";
    private static final String MANIFEST = ".pgkernel-files";
    private static final String VERSION_FILE = ".pgkernel-version";
    private static final Pattern VERSION = Pattern.compile("\\(PostgreSQL\\) (\\d+(\\.\\d+)?)");
    private static final Map<String, PostgresBinaries> UNPACKED = new HashMap<>();

    private final Path home;
    private final String version;

    private PostgresBinaries(Path home, String version) {
        this.home = home;
        this.version = version;
    }

    /**
     * The judge: the release on the class path, PostgreSQL 15.7.
     *
     * @throws PostgresServerException when there is none, or it cannot be unpacked
     */
    public static PostgresBinaries judge() {
        InputStream in = PostgresBinaries.class.getClassLoader().getResourceAsStream(RESOURCE);
        if (in == null) {
            throw new PostgresServerException(
                    "no PostgreSQL binaries on the class path: resource=" + RESOURCE);
        }
        try (in) {
            return unpacked("class path", in.readAllBytes());
        } catch (IOException e) {
            throw new PostgresServerException(
                    "cannot read the PostgreSQL binaries: resource=" + RESOURCE, e);
        }
    }

    /**
     * The release inside an embedded-binaries jar.
     *
     * @throws PostgresServerException when the jar holds none, or it cannot be unpacked
     */
    public static PostgresBinaries fromJar(Path jar) {
        try (JarFile file = new JarFile(jar.toFile())) {
            ZipEntry entry = file.getEntry(RESOURCE);
            if (entry == null) {
                throw new PostgresServerException(
                        "not a jar with PostgreSQL binaries for Linux x86-64: file=" + jar);
            }
            try (InputStream in = file.getInputStream(entry)) {
                return unpacked(jar.toString(), in.readAllBytes());
            }
        } catch (IOException e) {
            throw new PostgresServerException("cannot read PostgreSQL binaries: file=" + jar, e);
        }
    }

    /**
     * The first release of this major version among the judge and the jars of {@link
     * #JARS_PROPERTY}.
     */
    public static Optional<PostgresBinaries> ofMajor(int major) {
        for (String jar : System.getProperty(JARS_PROPERTY, "").split(File.pathSeparator)) {
            if (!jar.isBlank()) {
                PostgresBinaries binaries = fromJar(Path.of(jar));
                if (binaries.major() == major) {
                    return Optional.of(binaries);
                }
            }
        }
        PostgresBinaries judge = judge();
        return judge.major() == major ? Optional.of(judge) : Optional.empty();
    }

    /**
     * A release of this major version that is installed on this system, on the PATH or where Debian
     * and Red Hat put it; with every tool.
     */
    public static Optional<PostgresBinaries> installed(int major) {
        Optional<Path> postgres = PostgresInspection.installed(major, "postgres");
        if (postgres.isEmpty()) {
            return Optional.empty();
        }
        try {
            Path home = postgres.get().toRealPath().getParent().getParent();
            return Optional.of(new PostgresBinaries(home, askVersion(home)));
        } catch (IOException e) {
            throw new PostgresServerException(
                    "cannot use the installed PostgreSQL: file=" + postgres.get(), e);
        }
    }

    /** The unpacked release's root: {@code bin}, {@code lib}, {@code share}. */
    public Path home() {
        return home;
    }

    /** A program's path: {@code program("initdb")}. */
    public Path program(String name) {
        return home.resolve("bin").resolve(name);
    }

    /** As the server says it: {@code 15.7}. */
    public String version() {
        return version;
    }

    public int major() {
        int dot = version.indexOf('.');
        return Integer.parseInt(dot < 0 ? version : version.substring(0, dot));
    }

    @Override
    public String toString() {
        return "PostgreSQL " + version + " in " + home;
    }

    private static synchronized PostgresBinaries unpacked(String origin, byte[] archive) {
        String key = sha256(archive).substring(0, 16);
        PostgresBinaries known = UNPACKED.get(key);
        if (known != null) {
            return known;
        }
        try {
            Path cache = cacheDirectory();
            Path home = cache.resolve("postgres-" + key);
            if (!complete(home)) {
                try (FileChannel lock =
                                FileChannel.open(
                                        cache.resolve("postgres-" + key + ".lock"),
                                        StandardOpenOption.CREATE,
                                        StandardOpenOption.WRITE);
                        var held = lock.lock()) {
                    if (!complete(home)) {
                        unpack(archive, home);
                    }
                }
            }
            PostgresBinaries binaries =
                    new PostgresBinaries(
                            home, Files.readString(home.resolve(VERSION_FILE)).strip());
            UNPACKED.put(key, binaries);
            return binaries;
        } catch (IOException e) {
            throw new PostgresServerException(
                    "cannot unpack PostgreSQL binaries: origin=" + origin, e);
        }
    }

    private static Path cacheDirectory() throws IOException {
        String override = System.getProperty(CACHE_PROPERTY);
        Path cache;
        if (override != null) {
            cache = Path.of(override).toAbsolutePath();
        } else if (ServerUser.runningAsRoot()) {
            cache = Path.of(System.getProperty("java.io.tmpdir"), "pgkernel-cache-root");
        } else {
            String xdg = System.getenv("XDG_CACHE_HOME");
            cache =
                    (xdg == null || xdg.isBlank()
                                    ? Path.of(System.getProperty("user.home"), ".cache")
                                    : Path.of(xdg))
                            .resolve("pgkernel");
        }
        if (!Files.isDirectory(cache)) {
            Files.createDirectories(cache);
            Files.setPosixFilePermissions(cache, PosixFilePermissions.fromString("rwxr-xr-x"));
        }
        // A directory in a shared place could have been planted: what we run from it must be ours.
        String owner = Files.getOwner(cache, LinkOption.NOFOLLOW_LINKS).getName();
        if (ServerUser.runningAsRoot() && !owner.equals("root")) {
            throw new IOException(
                    "the cache directory belongs to " + owner + ", not to root: file=" + cache);
        }
        return cache;
    }

    private static boolean complete(Path home) throws IOException {
        Path manifest = home.resolve(MANIFEST);
        if (!Files.exists(manifest)) {
            return false;
        }
        for (String line : Files.readAllLines(manifest)) {
            int space = line.indexOf(' ');
            Path file = home.resolve(line.substring(space + 1));
            if (!Files.exists(file, LinkOption.NOFOLLOW_LINKS)
                    || !Files.isSymbolicLink(file)
                            && Files.size(file) != Long.parseLong(line.substring(0, space))) {
                return false;
            }
        }
        return true;
    }

    private static void unpack(byte[] archive, Path home) throws IOException {
        FileTrees.delete(home);
        Path temporary = Files.createTempDirectory(home.getParent(), "unpacking-");
        try {
            Files.setPosixFilePermissions(temporary, PosixFilePermissions.fromString("rwxr-xr-x"));
            List<String> manifest = new ArrayList<>();
            try (var tar =
                    new TarArchiveInputStream(
                            new BufferedInputStream(
                                    new XZInputStream(new java.io.ByteArrayInputStream(archive)),
                                    1 << 16))) {
                for (TarArchiveEntry entry = tar.getNextEntry();
                        entry != null;
                        entry = tar.getNextEntry()) {
                    extract(tar, entry, temporary, manifest);
                }
            }
            Files.writeString(temporary.resolve(VERSION_FILE), askVersion(temporary));
            Files.write(temporary.resolve(MANIFEST), manifest);
            try {
                Files.move(temporary, home, StandardCopyOption.ATOMIC_MOVE);
            } catch (AtomicMoveNotSupportedException e) {
                throw new IOException(
                        "the cache directory cannot rename atomically: file=" + home, e);
            }
        } finally {
            FileTrees.delete(temporary);
        }
    }

    private static void extract(
            InputStream tar, TarArchiveEntry entry, Path root, List<String> manifest)
            throws IOException {
        Path target = root.resolve(entry.getName()).normalize();
        if (!target.startsWith(root)) {
            throw new IOException(
                    "an archive entry leaves its directory: entry=" + entry.getName());
        }
        if (entry.isDirectory()) {
            Files.createDirectories(target);
            return;
        }
        Files.createDirectories(target.getParent());
        if (entry.isSymbolicLink()) {
            Path link = Path.of(entry.getLinkName());
            if (link.isAbsolute()
                    || !target.getParent().resolve(link).normalize().startsWith(root)) {
                throw new IOException(
                        "a symbolic link leaves its directory: entry=" + entry.getName());
            }
            Files.createSymbolicLink(target, link);
            manifest.add("0 " + entry.getName());
        } else if (entry.isLink()) {
            Files.createLink(target, root.resolve(entry.getLinkName()));
            manifest.add(Files.size(target) + " " + entry.getName());
        } else if (entry.isFile()) {
            try (OutputStream out = Files.newOutputStream(target)) {
                tar.transferTo(out);
            }
            Set<PosixFilePermission> mode =
                    PosixFilePermissions.fromString(
                            (entry.getMode() & 0111) != 0 ? "rwxr-xr-x" : "rw-r--r--");
            Files.setPosixFilePermissions(target, mode);
            manifest.add(Files.size(target) + " " + entry.getName());
        }
    }

    private static String askVersion(Path home) throws IOException {
        // "postgres (PostgreSQL) 15.7"; the one thing that root may ask of it.
        String text =
                Processes.run(List.of(home.resolve("bin/postgres").toString(), "--version"), 30)
                        .output()
                        .strip();
        Matcher matcher = VERSION.matcher(text);
        if (!matcher.find()) {
            throw new IOException("unexpected answer from postgres --version: \"" + text + "\"");
        }
        return matcher.group(1);
    }

    private static String sha256(byte[] bytes) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError(e);
        }
    }
}
