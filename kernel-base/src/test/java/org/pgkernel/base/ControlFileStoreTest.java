package org.pgkernel.base;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;

final class ControlFileStoreTest {
    private final Disk disk = new PosixDisk();

    @TempDir Path directory;

    @BeforeEach
    void realFile() throws Exception {
        Files.createDirectory(directory.resolve("global"));
        Files.write(directory.resolve("global/pg_control"), RealControlFile.bytes());
    }

    private ControlFileStore open(Disk over) {
        return ControlFileStore.open(over, directory.toString(), InstantSource.system(), true);
    }

    private ControlFile onDisk() {
        return ControlFile.read(disk, directory.toString());
    }

    @Test
    @DisplayName("R10: a change is written whole by one call, then synced")
    void updateIsWrittenThenSynced() {
        List<String> calls = new ArrayList<>();
        Disk watched =
                new FaultyDisk() {
                    @Override
                    void before(String method) {
                        calls.add(method);
                    }

                    @Override
                    void after(String method, Object[] arguments) {
                        if (method.equals("write")) {
                            calls.add(arguments[1] + " bytes at " + arguments[2]);
                        }
                    }
                }.over(disk);
        try (ControlFileStore store = open(watched)) {
            calls.clear();
            store.update(c -> c.setMinRecoveryPoint(0x1234));
            assertEquals(List.of("write", "8192 bytes at 0", "dataSync"), calls);
            assertEquals(0x1234, onDisk().minRecoveryPoint());
            assertEquals(0x1234, store.snapshot().minRecoveryPoint());
        }
    }

    @Test
    void openingWritesNothing() throws Exception {
        open(disk).close();
        assertEquals(1796052635L, onDisk().time());
    }

    @Test
    void changeThatThrowsIsUndone() {
        try (ControlFileStore store = open(disk)) {
            assertThrows(
                    IllegalStateException.class,
                    () ->
                            store.update(
                                    c -> {
                                        c.setCheckPoint(5);
                                        throw new IllegalStateException();
                                    }));
            assertEquals(0, store.snapshot().describeDifferences(onDisk(), false).size());
        }
    }

    // BASE-7
    @Test
    void failedSyncStopsTheStoreForGood() {
        boolean[] failing = {false};
        int[] syncs = {0};
        Disk faulty =
                new FaultyDisk() {
                    @Override
                    void before(String method) {
                        if (method.equals("dataSync") && failing[0]) {
                            syncs[0]++;
                            throw new DiskException(
                                    "could not sync", "pg_control", DiskException.EIO);
                        }
                    }
                }.over(disk);
        try (ControlFileStore store = open(faulty)) {
            store.update(c -> c.setCheckPoint(1));
            failing[0] = true;
            assertThrows(KernelStoppedException.class, () -> store.update(c -> c.setCheckPoint(2)));
            failing[0] = false;
            KernelStoppedException e =
                    assertThrows(
                            KernelStoppedException.class,
                            () -> store.update(c -> c.setCheckPoint(3)));
            assertTrue(e.getMessage().contains("pg_control"), e.getMessage());
            assertEquals(1, syncs[0], "a failed sync is never tried again");
        }
    }

    // BASE-6
    @Test
    @DisplayName("R10: changes under one lock are all there, and a reader never sees half a file")
    void threadsLoseNoUpdate() throws Exception {
        try (ControlFileStore store = open(disk)) {
            long before = store.snapshot().unloggedLsn();
            List<Thread> threads = new ArrayList<>();
            for (int t = 0; t < 4; t++) {
                threads.add(
                        Thread.ofPlatform()
                                .start(
                                        () -> {
                                            for (int i = 0; i < 50; i++) {
                                                store.update(ControlFileStoreTest::addOne);
                                            }
                                        }));
            }
            long seen = before;
            while (threads.stream().anyMatch(Thread::isAlive)) {
                long now = onDisk().unloggedLsn();
                assertTrue(now >= seen, now + " after " + seen);
                seen = now;
            }
            assertEquals(before + 200, onDisk().unloggedLsn());
        }
    }

    /** Others have time to come in between, if they are let. */
    private static void addOne(ControlFile control) {
        long before = control.unloggedLsn();
        for (int i = 0; i < 20; i++) {
            Thread.yield();
        }
        control.setUnloggedLsn(before + 1);
    }

    // BASE-2
    @Test
    void updateAllocatesNothing() {
        try (ControlFileStore store =
                ControlFileStore.open(disk, directory.toString(), InstantSource.system(), false)) {
            long bytes = Allocation.ofWarm(() -> advance(store, 1_000), 2_000);
            assertTrue(bytes < 2_000, bytes + " bytes allocated by 1,000 updates");
        }
    }

    private static void advance(ControlFileStore store, int count) {
        for (int i = 0; i < count; i++) {
            store.lock();
            try {
                store.current().setMinRecoveryPoint(i);
                store.write();
            } finally {
                store.unlock();
            }
        }
    }

    // BASE-6
    @Test
    void imageIsOnlySeenUnderTheLock() {
        try (ControlFileStore store = open(disk)) {
            assertThrows(AssertionError.class, store::current);
            assertThrows(AssertionError.class, store::write);
        }
    }
}
