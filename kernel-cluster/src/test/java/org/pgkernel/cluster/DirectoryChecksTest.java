package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.EnumSet;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.DbState;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.recovery.Recovery.Mode;

class DirectoryChecksTest {
    @TempDir Path dir;

    private final PosixDisk disk = new PosixDisk();
    private final ControlFile control = new ControlFile();

    @BeforeEach
    void makeDirectory() throws IOException {
        Files.writeString(dir.resolve("PG_VERSION"), "15\n");
        Files.createDirectories(dir.resolve("global"));
        Files.createDirectories(dir.resolve("pg_wal"));
        state(DbState.IN_PRODUCTION);
    }

    private void state(DbState state) throws IOException {
        control.setState(state);
        Files.deleteIfExists(dir.resolve("global/pg_control"));
        control.create(disk, dir.toString(), Clock.systemUTC());
    }

    private void check(Mode mode) {
        DirectoryChecks.check(disk, dir.toString(), mode);
    }

    private void assertRefused(Mode mode, String part) {
        String message = assertThrows(KernelException.class, () -> check(mode)).getMessage();
        assertTrue(message.contains(part), message);
        assertTrue(message.contains("file="), message);
        assertFalse(message.contains("\n"), message);
    }

    @Test
    void aCrashedClusterPasses() {
        assertDoesNotThrow(() -> check(Mode.CRASH));
    }

    @Test
    void noDirectoryNoVersionAnotherVersion() throws IOException {
        assertThrows(
                KernelException.class,
                () -> DirectoryChecks.check(disk, dir + "/none", Mode.CRASH));
        Files.writeString(dir.resolve("PG_VERSION"), "14\n");
        assertRefused(Mode.CRASH, "PostgreSQL 14");
        Files.writeString(dir.resolve("PG_VERSION"), "\u0001 rubbish of any length at all");
        assertRefused(Mode.CRASH, "no version that can be read");
        Files.delete(dir.resolve("PG_VERSION"));
        assertRefused(Mode.CRASH, "PG_VERSION");
    }

    @Test
    void baseBackupsAreNotServedYet() throws IOException {
        Files.createFile(dir.resolve("backup_label"));
        assertRefused(Mode.CRASH, "base backup");
        Files.delete(dir.resolve("backup_label"));
        control.setBackupStartPoint(5);
        state(DbState.IN_ARCHIVE_RECOVERY);
        assertRefused(Mode.STANDBY, "base backup");
    }

    @Test
    void aStandbysDirectoryIsNotForCrashRecovery() throws IOException {
        for (String name : new String[] {"standby.signal", "recovery.signal"}) {
            Files.createFile(dir.resolve(name));
            assertRefused(Mode.CRASH, name);
            Files.delete(dir.resolve(name));
        }
        state(DbState.IN_ARCHIVE_RECOVERY);
        assertRefused(Mode.CRASH, "in archive recovery");
        state(DbState.SHUTDOWNED_IN_RECOVERY);
        assertRefused(Mode.CRASH, "shut down in recovery");
    }

    @Test
    void aStandbyBeginsWithACopyThatWasShutDown() throws IOException {
        Set<DbState> fine =
                EnumSet.of(
                        DbState.SHUTDOWNED,
                        DbState.SHUTDOWNED_IN_RECOVERY,
                        DbState.IN_ARCHIVE_RECOVERY);
        for (DbState state : DbState.values()) {
            state(state);
            if (fine.contains(state)) {
                assertDoesNotThrow(() -> check(Mode.STANDBY));
            } else {
                assertRefused(Mode.STANDBY, state.text());
            }
        }
    }

    @Test
    void walOfAnotherSegmentSizeIsRefusedButATornSegmentIsNot() throws IOException {
        Path segment = dir.resolve("pg_wal/000000010000000000000001");
        try (RandomAccessFile file = new RandomAccessFile(segment.toFile(), "rw")) {
            file.setLength(64 << 20);
        }
        assertRefused(Mode.CRASH, "67108864");
        try (RandomAccessFile file = new RandomAccessFile(segment.toFile(), "rw")) {
            file.setLength(5_000_000);
        }
        assertDoesNotThrow(() -> check(Mode.CRASH));
        Files.delete(segment);
        Files.delete(dir.resolve("pg_wal"));
        assertRefused(Mode.CRASH, "no WAL");
    }
}
