package org.pgkernel.recovery;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.disk.PosixDisk;

class UnloggedRelationsTest {
    @TempDir Path dir;

    @Test
    void onlyRelationsWithAnInitForkAreReset() throws IOException {
        Path db = Files.createDirectories(dir.resolve("base/5"));
        for (String name :
                List.of(
                        "100",
                        "100.1",
                        "100_fsm",
                        "100_vm",
                        "100_init",
                        "200",
                        "200_fsm",
                        "t3_100",
                        "100x",
                        "pg_filenode.map",
                        "PG_VERSION")) {
            Files.write(db.resolve(name), name.getBytes());
        }
        PosixDisk disk = new PosixDisk();
        UnloggedRelations.cleanUp(disk, dir.toString());
        assertEquals(
                List.of(
                        "100_init",
                        "100x",
                        "200",
                        "200_fsm",
                        "PG_VERSION",
                        "pg_filenode.map",
                        "t3_100"),
                names(db));
        UnloggedRelations.initialize(disk, dir.toString());
        assertArrayEquals("100_init".getBytes(), Files.readAllBytes(db.resolve("100")));
        assertEquals(8, names(db).size());
        // Recovery that is interrupted here and run again does both once more.
        UnloggedRelations.cleanUp(disk, dir.toString());
        UnloggedRelations.initialize(disk, dir.toString());
        assertEquals(8, names(db).size());
    }

    /** What an abort leaves of a table that redo creates again. Found by the crash matrix. */
    @Test
    void aMainForkThatIsThereBeforeItIsMadeIsReplaced() throws IOException {
        Path db = Files.createDirectories(dir.resolve("base/5"));
        Files.write(db.resolve("100"), new byte[0]);
        Files.write(db.resolve("100_fsm"), new byte[1]);
        Files.write(db.resolve("100_init"), "init".getBytes());
        UnloggedRelations.initialize(new PosixDisk(), dir.toString());
        assertArrayEquals("init".getBytes(), Files.readAllBytes(db.resolve("100")));
        assertEquals(List.of("100", "100_init"), names(db));
    }

    @Test
    void directoriesThatAreNoDatabasesAreLeftAlone() throws IOException {
        Path other = Files.createDirectories(dir.resolve("base/pgsql_tmp"));
        Files.write(other.resolve("100_init"), new byte[1]);
        Files.write(other.resolve("100"), new byte[1]);
        UnloggedRelations.cleanUp(new PosixDisk(), dir.toString());
        assertEquals(List.of("100", "100_init"), names(other));
    }

    @Test
    void fileNamesAreTakenApartAsPostgresDoes() {
        assertEquals("", UnloggedRelations.fork("16384"));
        assertEquals("", UnloggedRelations.fork("16384.12"));
        assertEquals("_vm", UnloggedRelations.fork("16384_vm"));
        assertEquals("_init", UnloggedRelations.fork("16384_init.1"));
        assertNull(UnloggedRelations.fork("t1_16384"));
        assertNull(UnloggedRelations.fork("16384_foo"));
        assertNull(UnloggedRelations.fork("16384."));
        assertNull(UnloggedRelations.fork("16384.x"));
        assertNull(UnloggedRelations.fork("12345678901"));
        assertNull(UnloggedRelations.fork(""));
    }

    private static List<String> names(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(p -> p.getFileName().toString()).sorted().toList();
        }
    }
}
