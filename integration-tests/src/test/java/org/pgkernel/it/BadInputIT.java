package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.cli.Main;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.testkit.ClusterComparison;
import org.pgkernel.testkit.ForwardingDisk;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WalCut;
import org.pgkernel.testkit.Workloads;

/**
 * A directory that cannot be recovered is refused in one sentence that says why, and nothing is
 * written.
 */
class BadInputIT {
    private static CrashedCluster cluster;
    private static String victim;
    private int copies;

    @BeforeAll
    static void crash() throws Exception {
        // Checksums, and no images: a damaged page is read, and seen to be damaged.
        var settings =
                new CrashedCluster.Settings(PostgresBinaries.judge(), true, false, "off", "16MB");
        cluster =
                CrashedCluster.make(
                        settings,
                        server -> {
                            try (var connection = server.connect("postgres");
                                    var statement = connection.createStatement()) {
                                Workloads.load(connection, "victim_", 1, 1000, "varchar(20)");
                                victim =
                                        Workloads.text(
                                                connection,
                                                "select pg_relation_filepath('victim_0')");
                                statement.execute("vacuum victim_0");
                            }
                        },
                        Workloads::truncatePlain,
                        server -> {
                            try (var connection = server.connect("postgres");
                                    var statement = connection.createStatement()) {
                                statement.execute(
                                        "update victim_0 set v_ch = 'changed' where id between 500 and 520");
                            }
                            Workloads.truncateWithToast(server);
                        });
    }

    @AfterAll
    static void clean() {
        cluster.close();
    }

    @Test
    void notACluster() {
        assertRefused(
                directory -> {
                    try {
                        Files.delete(directory.resolve("PG_VERSION"));
                    } catch (IOException e) {
                        throw new AssertionError(e);
                    }
                },
                "PG_VERSION");
        Path missing = cluster.work().resolve("missing");
        String message = assertThrows(KernelException.class, () -> recover(missing)).getMessage();
        assertTrue(message.contains("file=" + missing), message);
        assertFalse(Files.exists(missing));
    }

    @Test
    void anotherMajorVersion() {
        assertRefused(directory -> write(directory.resolve("PG_VERSION"), "14\n"), "14");
        assertRefused(
                directory -> control(directory, control -> control.setCatalogVersionNo(202107181)),
                "202107181");
        assertRefused(
                directory -> control(directory, control -> control.setPgControlVersion(1700)),
                "1700");
    }

    @Test
    void anotherBlockOrSegmentSize() {
        assertRefused(
                directory -> control(directory, control -> control.setBlockSize(16384)), "16384");
        assertRefused(
                directory -> control(directory, control -> control.setXlogBlockSize(16384)),
                "16384");
        assertRefused(
                directory -> control(directory, control -> control.setRelSegSize(65536)), "65536");
        assertRefused(
                directory -> control(directory, control -> control.setXlogSegSize(48 << 20)),
                "" + (48 << 20));
    }

    /**
     * Local WAL is read through first: nothing has changed when a type turns out not to be covered.
     */
    @Test
    void recordTypeThatIsNotCoveredIsRefusedByNameAndPlace() throws Exception {
        try (CrashedCluster other =
                CrashedCluster.make(
                        cluster.settings(),
                        server -> {},
                        Workloads::truncatePlain,
                        server -> {
                            try (var connection = server.connect("postgres");
                                    var statement = connection.createStatement()) {
                                statement.execute("create table words(w int[])");
                                statement.execute(
                                        "insert into words select array[g, g + 1] from generate_series(1, 100) g");
                                statement.execute("create index on words using gin (w)");
                                statement.execute(
                                        "insert into words select array[g, g + 1] from generate_series(1, 100) g");
                            }
                        })) {
            Path directory = other.copy("gin", CrashedCluster.Base.AT_CRASH);
            Map<String, String> before = snapshot(directory);
            KernelException e = assertThrows(KernelException.class, () -> recover(directory));
            assertOneSentence(e.getMessage());
            assertTrue(
                    e.getMessage().contains("Gin")
                            && e.getMessage().matches(".*lsn=[0-9A-F]+/[0-9A-F]+.*"),
                    e.getMessage());
            assertEquals(before, snapshot(directory), e.getMessage());
        }
    }

    @Test
    void preparedTransactionsAreRefusedByNameAndPlace() throws Exception {
        var settings =
                new CrashedCluster.Settings(
                        PostgresBinaries.judge(),
                        false,
                        true,
                        "off",
                        "16MB",
                        16,
                        Map.of("max_prepared_transactions", "5"));
        try (CrashedCluster other =
                CrashedCluster.make(
                        settings,
                        server -> {},
                        server -> {
                            try (var connection = server.connect("postgres");
                                    var statement = connection.createStatement()) {
                                statement.execute(
                                        "begin; create table t(id int); prepare transaction 'a'");
                            }
                        },
                        server -> {})) {
            Path directory = other.copy("prepared", CrashedCluster.Base.AT_CRASH);
            Map<String, String> before = snapshot(directory);
            KernelException e = assertThrows(KernelException.class, () -> recover(directory));
            assertOneSentence(e.getMessage());
            assertTrue(
                    e.getMessage().contains("Transaction/PREPARE")
                            && e.getMessage().contains("lsn="),
                    e.getMessage());
            assertEquals(before, snapshot(directory), e.getMessage());
        }
    }

    /** Reading the WAL takes time; a server may come and go before the directory is locked. */
    @Test
    void aServerThatCameAndWentWhileTheWalWasReadIsNoticed() throws Exception {
        Path directory = cluster.copy("overtaken", CrashedCluster.Base.AT_CRASH);
        ForwardingDisk disk =
                new ForwardingDisk(new PosixDisk()) {
                    @Override
                    public DiskFile create(String path) {
                        if (path.endsWith("postmaster.pid")) {
                            PostgresServer.recover(
                                    cluster.settings().binaries(), directory, Map.of());
                        }
                        return super.create(path);
                    }
                };
        ClusterOptions options = ClusterOptions.defaults().withDisk(disk);
        KernelException e =
                assertThrows(
                        KernelException.class,
                        () -> Cluster.openForCrashRecovery(directory, options).close());
        assertOneSentence(e.getMessage());
        assertTrue(e.getMessage().contains("another process"), e.getMessage());
        assertFalse(Files.exists(directory.resolve("postmaster.pid")), "the lock is given back");
        String log = PostgresServer.recover(cluster.settings().binaries(), directory, Map.of());
        assertTrue(log.contains("database system was shut down"), log);
    }

    @Test
    void damagedControlFile() {
        assertRefused(directory -> flip(directory.resolve("global/pg_control"), 130), "pg_control");
        assertRefused(
                directory -> truncate(directory.resolve("global/pg_control"), 100), "pg_control");
        assertRefused(
                directory -> {
                    try {
                        Files.delete(directory.resolve("global/pg_control"));
                    } catch (IOException e) {
                        throw new AssertionError(e);
                    }
                },
                "pg_control");
    }

    @Test
    void withoutWalFromTheRedoPoint() {
        assertRefused(
                directory -> {
                    try {
                        for (Path segment : WalCut.segments(directory.resolve("pg_wal"))) {
                            Files.delete(segment);
                        }
                    } catch (IOException e) {
                        throw new AssertionError(e);
                    }
                },
                "lsn=");
        long redo =
                ControlFile.read(
                                new PosixDisk(),
                                cluster.copy("redo", CrashedCluster.Base.AT_CHECKPOINT).toString())
                        .checkPointRedo();
        assertRefused(
                directory -> {
                    try {
                        Path segment =
                                WalCut.segments(directory.resolve("pg_wal")).stream()
                                        .filter(
                                                file ->
                                                        WalCut.segmentNumber(file)
                                                                == redo / (16 << 20))
                                        .findFirst()
                                        .orElseThrow();
                        try (RandomAccessFile file = new RandomAccessFile(segment.toFile(), "rw")) {
                            file.seek(redo % (16 << 20));
                            file.write(
                                    new byte[(int) Math.min(4096, (16 << 20) - redo % (16 << 20))]);
                        }
                    } catch (IOException e) {
                        throw new AssertionError(e);
                    }
                },
                "lsn=");
    }

    @Test
    void aLiveServersDirectory() throws Exception {
        Path directory = cluster.copy("live", CrashedCluster.Base.AT_CRASH);
        try (PostgresServer server =
                PostgresServer.builder(cluster.settings().binaries(), directory)
                        .settings(cluster.settings().asMap())
                        .start()) {
            Map<String, String> before = snapshot(directory);
            String message =
                    assertThrows(KernelException.class, () -> recover(directory)).getMessage();
            assertTrue(message.contains("postmaster.pid"), message);
            assertTrue(message.contains(Long.toString(server.pid())), message);
            assertEquals(before, snapshot(directory));
        }
    }

    @Test
    void staleLockFileOfADeadServerIsNoObstacle() throws Exception {
        Path directory = cluster.copy("stale", CrashedCluster.Base.AT_CRASH);
        Process dead = new ProcessBuilder("true").start();
        dead.waitFor();
        write(
                directory.resolve("postmaster.pid"),
                dead.pid() + "\n" + directory + "\n1700000000\n5432\n/tmp\n\n\n");
        recover(directory);
        assertFalse(Files.exists(directory.resolve("postmaster.pid")));
    }

    /**
     * All before the record that met the damaged page stays applied, nothing after it is; after a
     * repair the same call goes on.
     */
    @Test
    void damagedPageInTheMiddleOfRedo() throws Exception {
        Path directory = cluster.copy("damaged", CrashedCluster.Base.AT_CHECKPOINT);
        for (int candidate = 0; candidate < 6; candidate++) {
            flip(directory.resolve(victim), candidate * 8192L + 8092);
        }
        DamagedDataException e = assertThrows(DamagedDataException.class, () -> recover(directory));
        assertOneSentence(e.getMessage());
        String number = victim.substring(victim.lastIndexOf('/') + 1);
        assertTrue(
                e.getMessage().contains("rel=1663/5/" + number)
                        && e.getMessage().contains("block="),
                e.getMessage());
        Matcher matcher = Pattern.compile("lsn=([0-9A-F]+/[0-9A-F]+)").matcher(e.getMessage());
        assertTrue(matcher.find(), e.getMessage());
        long stopped = Lsn.parse(matcher.group(1));
        assertTrue(Long.compareUnsigned(stopped, cluster.pauseLsn()) >= 0, e.getMessage());

        // As if the WAL ended before that record: relations equal, the damaged pages apart.
        Path judged = cluster.copyCutAt("damaged-judged", stopped);
        PostgresServer.recover(cluster.settings().binaries(), judged, cluster.settings().asMap());
        ClusterComparison.Result result = ClusterComparison.compare(judged, directory, true);
        List<ClusterComparison.Difference> unexpected =
                result.differences().stream()
                        .filter(
                                difference ->
                                        difference.file().startsWith("base/")
                                                || difference.file().startsWith("global/"))
                        .filter(
                                difference ->
                                        !difference.file().equals(victim)
                                                || difference.block() < 0
                                                || difference.offset() != 8092
                                                        && difference.offset() != 8)
                        .toList();
        assertEquals(List.of(), unexpected);

        for (int candidate = 0; candidate < 6; candidate++) {
            flip(directory.resolve(victim), candidate * 8192L + 8092);
        }
        Path left = cluster.copy("repaired-judged", CrashedCluster.Base.AT_CHECKPOINT);
        EqualPages.check(
                cluster, left, directory, KernelRecovery.of(cluster, 4096, DropStrategy.LOOKUP));
        EqualPages.inspect(cluster, directory);
    }

    @Test
    void aRecoveryOfACopyThatStopsHalfWaySaysWhatItLeft() {
        Path directory = cluster.copy("half-way", CrashedCluster.Base.AT_CHECKPOINT);
        for (int candidate = 0; candidate < 6; candidate++) {
            flip(directory.resolve(victim), candidate * 8192L + 8092);
        }
        Map<String, String> before = snapshot(directory);
        Path copy = cluster.work().resolve("half-way-copy");
        PrintStream real = System.err;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        System.setErr(new PrintStream(said, true, StandardCharsets.UTF_8));
        try {
            assertEquals(1, Main.run("recover", directory.toString(), "--to", copy.toString()));
        } finally {
            System.setErr(real);
        }
        String message = said.toString(StandardCharsets.UTF_8).strip();
        assertEquals(1, message.lines().count(), message);
        assertTrue(message.contains("block=") && message.contains("is left: " + copy), message);
        assertTrue(Files.isDirectory(copy), message);
        assertEquals(before, snapshot(directory), message);
    }

    private void assertRefused(Consumer<Path> damage, String expected) {
        Path directory =
                cluster.copy(
                        "bad-" + copies++ + "-" + System.nanoTime(), CrashedCluster.Base.AT_CRASH);
        damage.accept(directory);
        Map<String, String> before = snapshot(directory);
        KernelException e = assertThrows(KernelException.class, () -> recover(directory));
        assertOneSentence(e.getMessage());
        assertTrue(e.getMessage().contains(expected), e.getMessage());
        assertEquals(before, snapshot(directory), e.getMessage());
    }

    private static void assertOneSentence(String message) {
        assertFalse(message.contains("\n"), message);
        assertTrue(message.matches("(?s).*(file|rel|lsn)=.*"), message);
    }

    private static void recover(Path directory) {
        KernelRecovery.of(cluster, 4096, DropStrategy.LOOKUP).recover(directory);
    }

    /** Every file's name, length, time and contents. */
    private static Map<String, String> snapshot(Path root) {
        Map<String, String> all = new TreeMap<>();
        try (Stream<Path> files = Files.walk(root)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                String key = root.relativize(file).toString();
                if (key.startsWith("pg_stat")) {
                    continue;
                }
                if (Files.isRegularFile(file)) {
                    var crc = new java.util.zip.CRC32C();
                    crc.update(Files.readAllBytes(file));
                    all.put(
                            key,
                            Files.size(file)
                                    + " "
                                    + Files.getLastModifiedTime(file)
                                    + " "
                                    + crc.getValue());
                } else {
                    all.put(key, "directory");
                }
            }
            return all;
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static void control(Path directory, Consumer<ControlFile> change) {
        PosixDisk disk = new PosixDisk();
        ControlFile control = ControlFile.read(disk, directory.toString());
        change.accept(control);
        control.write(disk, directory.toString(), false, java.time.Clock.systemUTC());
    }

    private static void write(Path file, String text) {
        try {
            Files.writeString(file, text);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static void truncate(Path file, int length) {
        try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
            bytes.setLength(length);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static void flip(Path file, long at) {
        try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
            bytes.seek(at);
            int old = bytes.read();
            bytes.seek(at);
            bytes.write(old ^ 0x10);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }
}
