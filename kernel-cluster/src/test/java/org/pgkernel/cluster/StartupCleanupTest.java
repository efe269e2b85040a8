package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.disk.PosixDisk;

class StartupCleanupTest {
    @TempDir Path dir;

    @Test
    void temporaryRelationsAreToldByTheirNames() {
        for (String name : List.of("t3_16385", "t3_16385_fsm", "t3_16385_vm.1", "t12_1.22")) {
            assertTrue(StartupCleanup.isTemporaryRelation(name), name);
        }
        for (String name :
                List.of(
                        "",
                        "t",
                        "t_1",
                        "t3_",
                        "t3",
                        "16385",
                        "t3_16385_foo",
                        "t3_16385.",
                        "t3_16385x",
                        "tx3_1")) {
            assertFalse(StartupCleanup.isTemporaryRelation(name), name);
        }
    }

    @Test
    void whatTheLastServerLeftGoesAndNothingElse() throws IOException {
        for (String path :
                List.of(
                        "base/5/16384",
                        "base/5/t3_16385",
                        "base/5/t3_16385.1",
                        "base/5/t3_16385_fsm",
                        "base/5/t3_16385_vm.2",
                        "base/5/t3_16385_mine",
                        "global/t3_16385",
                        "base/5/pg_internal.init",
                        "base/pgsql_tmp/pgsql_tmp1.0",
                        "global/pg_internal.init",
                        "global/1260",
                        "pg_notify/0000",
                        "pg_snapshots/00000003-0000001B-1",
                        "pg_tblspc/16400/PG_15_202209061/pgsql_tmp/pgsql_tmp1.0",
                        "pg_tblspc/16400/PG_15_202209061/5/16390",
                        "pg_tblspc/16400/PG_15_202209061/5/t3_16391",
                        "pg_wal/xlogtemp.12",
                        "pg_wal/000000010000000000000001",
                        "pg_stat/pgstat.stat")) {
            Path file = dir.resolve(path);
            Files.createDirectories(file.getParent());
            Files.write(file, new byte[1]);
        }
        PosixDisk disk = new PosixDisk();
        StartupCleanup.always(disk, dir.toString());
        StartupCleanup.afterCrash(disk, dir.toString());
        TreeSet<String> left = new TreeSet<>();
        try (Stream<Path> files = Files.walk(dir)) {
            files.filter(Files::isRegularFile).forEach(p -> left.add(dir.relativize(p).toString()));
        }
        assertEquals(
                List.of(
                        "base/5/16384",
                        "base/5/t3_16385_mine",
                        "global/1260",
                        "global/t3_16385",
                        "pg_tblspc/16400/PG_15_202209061/5/16390",
                        "pg_wal/000000010000000000000001"),
                List.copyOf(left));
        assertTrue(Files.isDirectory(dir.resolve("pg_wal/archive_status")));
    }
}
