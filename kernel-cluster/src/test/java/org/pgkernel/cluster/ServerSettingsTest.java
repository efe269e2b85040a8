package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.disk.PosixDisk;

class ServerSettingsTest {
    @TempDir Path dir;

    private final PosixDisk disk = new PosixDisk();

    @Test
    void aCommentedSettingIsNoSetting() throws IOException {
        Files.writeString(
                dir.resolve("postgresql.conf"), "#full_page_writes = off\nshared_buffers = 1GB\n");
        assertNull(ServerSettings.fullPageWrites(disk, dir.toString()));
    }

    @Test
    void theLastSettingWinsAndTheAutoFileOverrides() throws IOException {
        Files.writeString(
                dir.resolve("postgresql.conf"),
                "full_page_writes = on\n  full_page_writes 'off' # why\n");
        assertEquals(false, ServerSettings.fullPageWrites(disk, dir.toString()));
        Files.writeString(dir.resolve("postgresql.auto.conf"), "full_page_writes = 'yes'\n");
        assertEquals(true, ServerSettings.fullPageWrites(disk, dir.toString()));
    }

    @Test
    void booleansAreReadAsPostgresReadsThem() {
        assertEquals(true, ServerSettings.parse("t"));
        assertEquals(false, ServerSettings.parse("of"));
        assertNull(ServerSettings.parse("o"));
        assertNull(ServerSettings.parse("maybe"));
        assertNull(ServerSettings.parse(""));
    }
}
