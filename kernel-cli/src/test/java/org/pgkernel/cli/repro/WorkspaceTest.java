package org.pgkernel.cli.repro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.cli.UserException;

class WorkspaceTest {
    @TempDir Path temp;

    private static long entries(Path directory) throws IOException {
        try (Stream<Path> all = Files.list(directory)) {
            return all.count();
        }
    }

    @Test
    void theFirstPlaceThatExistsIsTakenAndLeftClean() throws IOException {
        Path[] places = {temp.resolve("no-such-memory"), temp};
        try (Workspace work = Workspace.open(null, places, 1)) {
            assertEquals(temp, work.path().getParent());
            Files.writeString(work.path().resolve("data"), "x");
        }
        assertEquals(0, entries(temp));
    }

    @Test
    void withoutRoomAnywhereOneSentenceNamesEveryPlaceAndNothingIsMade() throws IOException {
        Path missing = temp.resolve("no-such-memory");
        UserException refusal =
                assertThrows(
                        UserException.class,
                        () -> Workspace.open(null, new Path[] {missing, temp}, Long.MAX_VALUE));
        String message = refusal.getMessage();
        assertTrue(message.contains(missing + " cannot be used"), message);
        assertTrue(message.contains(temp + " has "), message);
        assertFalse(message.contains("\n"), message);
        assertEquals(0, entries(temp));
    }

    @Test
    void aKeptDirectoryWithoutRoomIsNotMade() throws IOException {
        Path keep = temp.resolve("a/b");
        assertThrows(UserException.class, () -> Workspace.open(keep, new Path[0], Long.MAX_VALUE));
        assertEquals(0, entries(temp));
    }

    @Test
    void aKeptDirectoryStays() throws IOException {
        Path keep = temp.resolve("a/b");
        try (Workspace work = Workspace.open(keep, new Path[0], 1)) {
            Files.writeString(work.path().resolve("data"), "x");
        }
        assertTrue(Files.exists(keep.resolve("data")));
        assertThrows(UserException.class, () -> Workspace.open(keep, new Path[0], 1));
    }
}
