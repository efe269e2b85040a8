package org.pgkernel.base;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.function.Consumer;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.base.error.RefusedException;

final class ControlFileTest {
    private static final InstantSource CLOCK =
            InstantSource.fixed(Instant.ofEpochSecond(2_000_000_000L));

    private final Disk disk = new PosixDisk();

    @TempDir Path directory;

    private Path file;

    @BeforeEach
    void realFile() throws Exception {
        Files.createDirectory(directory.resolve("global"));
        file = directory.resolve("global/pg_control");
        Files.write(file, RealControlFile.bytes());
    }

    private ControlFile read() {
        return ControlFile.read(disk, directory.toString());
    }

    /** Changes the bytes, puts the checksum right, and expects the refusal to say {@code words}. */
    private void refuses(
            Class<? extends KernelException> kind, Consumer<UnsafeBuffer> change, String... words)
            throws Exception {
        byte[] bytes = RealControlFile.bytes();
        UnsafeBuffer image = new UnsafeBuffer(bytes);
        change.accept(image);
        image.putInt(288, Crc32c.of(image, 0, 288));
        Files.write(file, bytes);
        KernelException e = assertThrows(kind, this::read);
        for (String word : words) {
            assertTrue(e.getMessage().contains(word), e.getMessage());
        }
        assertTrue(e.getMessage().endsWith("file=" + file), e.getMessage());
        assertArrayEquals(bytes, Files.readAllBytes(file), "reading writes nothing");
    }

    @Test
    void everyFieldOfAFileThatPostgresWroteIsRead() {
        ControlFile control = read();
        assertEquals(7713987328423094829L, control.systemIdentifier());
        assertEquals(1300, control.pgControlVersion());
        assertEquals(202209061, control.catalogVersionNo());
        assertEquals(DbState.SHUTDOWNED, control.state());
        assertEquals("shut down", control.state().text());
        assertEquals(1796052635L, control.time());
        assertEquals("0/17414F0", Lsn.format(control.checkPoint()));
        assertEquals("0/17414F0", Lsn.format(control.checkPointRedo()));
        assertEquals(1, control.checkPointThisTimeLineId());
        assertEquals(1, control.checkPointPrevTimeLineId());
        assertTrue(control.checkPointFullPageWrites());
        assertEquals(724, control.checkPointNextXid());
        assertEquals(13572, control.checkPointNextOid());
        assertEquals(1, control.checkPointNextMulti());
        assertEquals(0, control.checkPointNextMultiOffset());
        assertEquals(716, control.checkPointOldestXid());
        assertEquals(1, control.checkPointOldestXidDb());
        assertEquals(0, control.checkPointOldestActiveXid());
        assertEquals(1, control.checkPointOldestMulti());
        assertEquals(1, control.checkPointOldestMultiDb());
        assertEquals(0, control.checkPointOldestCommitTsXid());
        assertEquals(0, control.checkPointNewestCommitTsXid());
        assertEquals(1796052635L, control.checkPointTime());
        assertEquals(0x3E8, control.unloggedLsn());
        assertEquals(0, control.minRecoveryPoint());
        assertEquals(0, control.minRecoveryPointTli());
        assertEquals(0, control.backupStartPoint());
        assertEquals(0, control.backupEndPoint());
        assertFalse(control.backupEndRequired());
        assertEquals(ControlFile.WAL_LEVEL_REPLICA, control.walLevel());
        assertFalse(control.walLogHints());
        assertEquals(100, control.maxConnections());
        assertEquals(8, control.maxWorkerProcesses());
        assertEquals(10, control.maxWalSenders());
        assertEquals(0, control.maxPreparedXacts());
        assertEquals(64, control.maxLocksPerXact());
        assertFalse(control.trackCommitTimestamp());
        assertEquals(8, control.maxAlign());
        assertEquals(1234567.0, control.floatFormat());
        assertEquals(8192, control.blockSize());
        assertEquals(131072, control.relSegSize());
        assertEquals(8192, control.xlogBlockSize());
        assertEquals(16 << 20, control.xlogSegSize());
        assertEquals(64, control.nameDataLen());
        assertEquals(32, control.indexMaxKeys());
        assertEquals(1996, control.toastMaxChunkSize());
        assertEquals(2048, control.loBlockSize());
        assertTrue(control.float8ByVal());
        assertEquals(1, control.dataChecksumVersion());
        assertTrue(control.checksumsEnabled());
        byte[] nonce = new byte[32];
        control.mockAuthenticationNonce(nonce);
        assertEquals(
                "bdcbb4b62f92a6d9690f717b16e272fbdd221ba1e29c2baf04ded6ef93ea1ee7",
                HexFormat.of().formatHex(nonce));
    }

    @Test
    void newControlFileHasTheConstantsOfARealOne() {
        ControlFile fresh = new ControlFile();
        for (var difference : read().describeDifferences(fresh, true)) {
            assertTrue(
                    "system_identifier state checkPoint checkPointCopy unloggedLSN wal_level MaxConnections max_worker_processes"
                            .concat(
                                    " max_wal_senders max_locks_per_xact data_checksum_version mock_authentication_nonce")
                            .contains(difference.field().replaceAll("\\..*", "")),
                    difference.toString());
        }
    }

    @Test
    void writingKeepsAllButTheTimeAndOverwritesTheWholeFile() throws Exception {
        ControlFile control = read();
        byte[] longer = RealControlFile.bytes();
        longer[300] = 9;
        Files.write(file, longer);
        control.write(disk, directory.toString(), true, CLOCK);
        byte[] written = Files.readAllBytes(file);
        assertEquals(8192, written.length);
        assertEquals(0, written[300], "what lies behind the data is zeroed");
        ControlFile again = read();
        assertEquals(2_000_000_000L, again.time());
        assertEquals(
                "[time: 1796052635 against 2000000000]",
                control(RealControlFile.bytes()).describeDifferences(again, false).toString());
    }

    private static ControlFile control(byte[] bytes) {
        return ControlFile.decode(new UnsafeBuffer(bytes), 0, bytes.length, "x");
    }

    @Test
    void createMakesAFileThatIsReadBackAndNeverReplacesOne() throws Exception {
        ControlFile control = read();
        assertThrows(
                KernelException.class, () -> control.create(disk, directory.toString(), CLOCK));
        Files.delete(file);
        assertThrows(
                KernelException.class,
                () -> control.write(disk, directory.toString(), true, CLOCK));
        control.create(disk, directory.toString(), CLOCK);
        assertEquals(0, control.describeDifferences(read(), false).size());
    }

    @Test
    void directoryWithoutControlFileIsRefusedInWords() throws Exception {
        Files.delete(file);
        RefusedException e = assertThrows(RefusedException.class, this::read);
        assertTrue(e.getMessage().contains("not a PostgreSQL data directory"), e.getMessage());
    }

    @Test
    void otherMajorVersionsAreRefusedByName() throws Exception {
        refuses(RefusedException.class, b -> b.putInt(8, 1201), "PostgreSQL 12");
        refuses(RefusedException.class, b -> b.putInt(8, 1700), "PostgreSQL 17");
        refuses(
                RefusedException.class,
                b -> b.putInt(12, 202007201),
                "PostgreSQL 13",
                "catalog_version_no");
        refuses(RefusedException.class, b -> b.putInt(12, 202107181), "PostgreSQL 14");
        refuses(RefusedException.class, b -> b.putInt(12, 202307071), "PostgreSQL 16");
        refuses(RefusedException.class, b -> b.putInt(12, 5), "no released PostgreSQL");
        refuses(RefusedException.class, b -> b.putInt(8, Integer.reverseBytes(1300)), "byte order");
        refuses(DamagedDataException.class, b -> b.putInt(8, 0), "pg_control_version 0");
    }

    @Test
    void otherSizesAreRefusedByFieldName() throws Exception {
        refuses(RefusedException.class, b -> b.putInt(216, 32768), "blcksz is 32768");
        refuses(RefusedException.class, b -> b.putInt(220, 1), "relseg_size is 1");
        refuses(RefusedException.class, b -> b.putInt(224, 16384), "xlog_blcksz");
        refuses(RefusedException.class, b -> b.putInt(228, 3 << 20), "xlog_seg_size");
        refuses(RefusedException.class, b -> b.putInt(228, 1 << 31), "xlog_seg_size");
        refuses(RefusedException.class, b -> b.putInt(228, 0), "xlog_seg_size");
        refuses(RefusedException.class, b -> b.putInt(204, 4), "maxAlign");
        refuses(RefusedException.class, b -> b.putDouble(208, 1), "floatFormat");
        refuses(RefusedException.class, b -> b.putInt(252, 2), "data_checksum_version");
        refuses(DamagedDataException.class, b -> b.putInt(16, 7), "state is 7");
    }

    @Test
    void wrongSizeOrChecksumIsDamage() throws Exception {
        Files.write(file, Arrays.copyOf(RealControlFile.bytes(), 8191));
        assertTrue(
                assertThrows(DamagedDataException.class, this::read)
                        .getMessage()
                        .contains("8191 bytes"));
        Files.write(file, new byte[0]);
        assertThrows(DamagedDataException.class, this::read);
        byte[] bytes = RealControlFile.bytes();
        bytes[32]++;
        Files.write(file, bytes);
        assertTrue(
                assertThrows(DamagedDataException.class, this::read)
                        .getMessage()
                        .contains("incorrect checksum"));
    }

    // BASE-6
    @Test
    @DisplayName(
            "R10: a reader that meets a half-written file reads again before calling it damaged")
    void halfWrittenFileIsReadAgain() {
        int[] reads = {0};
        Disk torn =
                new FaultyDisk() {
                    @Override
                    void after(String method, Object[] arguments) {
                        if (method.equals("read") && ++reads[0] <= 3) {
                            // Another byte each time, as a writer at work would show.
                            UnsafeBuffer memory = new UnsafeBuffer((long) arguments[0], 8192);
                            memory.putByte(32 + reads[0], (byte) ~memory.getByte(32 + reads[0]));
                        }
                    }
                }.over(disk);
        assertEquals(
                "0/17414F0", Lsn.format(ControlFile.read(torn, directory.toString()).checkPoint()));
        assertEquals(4, reads[0]);
    }

    @Test
    @DisplayName("R10: the same bad checksum twice is damage, without more tries")
    void lastingBadChecksumIsDamage() throws Exception {
        byte[] bytes = RealControlFile.bytes();
        bytes[32]++;
        Files.write(file, bytes);
        int[] reads = {0};
        Disk counting =
                new FaultyDisk() {
                    @Override
                    void before(String method) {
                        reads[0] += method.equals("read") ? 1 : 0;
                    }
                }.over(disk);
        assertThrows(
                DamagedDataException.class, () -> ControlFile.read(counting, directory.toString()));
        assertEquals(2, reads[0]);
    }
}
