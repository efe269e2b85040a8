package org.pgkernel.testkit;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.testkit.Fault.Effect;

/**
 * Each line of the fault model does occur, and each guarantee holds where it is put to the test.
 */
class SimulatedDiskTest {
    private static final int PAGE = 8192;
    private static final int SECTOR = 512;

    private final SimulatedDisk disk = new SimulatedDisk(1).directories("/d");

    @Test
    void syncedBytesSurviveAndUnsyncedOnesMayNot() {
        DiskFile file = DiskProbe.durable(disk, "/d/a", PAGE, 1);
        DiskProbe.write(file, 0, PAGE, 2);
        assertEquals(2, disk.content("/d/a")[0]);
        assertEquals(1, disk.restart(SimulatedDisk.LOSE_ALL).content("/d/a")[0]);
        assertEquals(2, disk.restart(SimulatedDisk.KEEP_ALL).content("/d/a")[0]);
    }

    @Test
    void whoeverWatchesSeesWhatACrashAtThatChangeWouldLeave() {
        List<String> seen = new ArrayList<>();
        disk.watch(change -> seen.add(change + found(disk)));
        replace(disk);
        assertEquals(5, seen.size());
        for (int change = 1; change <= seen.size(); change++) {
            SimulatedDisk crashed = new SimulatedDisk(1).directories("/d");
            crashed.plan(Fault.crashAtChange(change));
            assertThrows(SimulatedCrash.class, () -> replace(crashed));
            assertEquals(change + found(crashed), seen.get(change - 1));
        }
    }

    private static void replace(SimulatedDisk disk) {
        DiskFile file = disk.create("/d/new");
        DiskProbe.write(file, 0, "version");
        file.sync();
        disk.rename("/d/new", "/d/file");
        disk.syncDirectory("/d");
    }

    /** In twenty outcomes. */
    private static String found(SimulatedDisk disk) {
        StringBuilder found = new StringBuilder();
        for (int outcome = 0; outcome < 20; outcome++) {
            SimulatedDisk then = disk.found(outcome);
            found.append(' ').append(DiskProbe.text(then, "/d/new"));
            found.append(' ').append(DiskProbe.text(then, "/d/file"));
        }
        return found.toString();
    }

    @Test
    void pagesAreTornAtSectorsAndNowhereElse() {
        DiskFile file = DiskProbe.durable(disk, "/d/a", PAGE, 1);
        DiskProbe.write(file, 0, PAGE, 2);
        Set<String> mixtures = new HashSet<>();
        for (int outcome = 2; outcome < 300; outcome++) {
            byte[] found = disk.restart(outcome).content("/d/a");
            StringBuilder mixture = new StringBuilder();
            for (int sector = 0; sector < PAGE / SECTOR; sector++) {
                byte first = found[sector * SECTOR];
                for (int i = 0; i < SECTOR; i++) {
                    assertEquals(first, found[sector * SECTOR + i], "SD-3 outcome " + outcome);
                }
                mixture.append(first);
            }
            mixtures.add(mixture.toString());
        }
        assertTrue(mixtures.contains("1".repeat(16)) && mixtures.contains("2".repeat(16)));
        assertTrue(mixtures.size() > 30, mixtures.size() + " ways to tear a page");
    }

    @Test
    void writesLandInAnyOrderAndOfSeveralToOnePlaceAnyOneIsFound() {
        DiskFile file = DiskProbe.durable(disk, "/d/a", 2 * SECTOR, 0);
        for (int version = 1; version <= 3; version++) {
            DiskProbe.write(file, 0, SECTOR, version);
            DiskProbe.write(file, SECTOR, SECTOR, version);
        }
        Set<String> found = new TreeSet<>();
        for (int outcome = 2; outcome < 600; outcome++) {
            byte[] content = disk.restart(outcome).content("/d/a");
            found.add(content[0] + "" + content[SECTOR]);
        }
        assertEquals(16, found.size(), found.toString());
    }

    @Test
    void anUnsyncedLengthIsOneOfThoseTheFileHad() {
        DiskFile file = DiskProbe.durable(disk, "/d/a", 1000, 1);
        DiskProbe.write(file, 1000, 1000, 2);
        file.truncate(500);
        DiskProbe.write(file, 500, 3000, 3);
        Set<Integer> lengths = new TreeSet<>();
        for (int outcome = 0; outcome < 300; outcome++) {
            byte[] content = disk.restart(outcome).content("/d/a");
            lengths.add(content.length);
            for (int i = 0; i < content.length; i++) {
                int end = content.length;
                boolean possible =
                        switch (content[i]) {
                            case 0 -> end > 1000 && i >= 500;
                            case 1 -> i < 1000;
                            case 2 -> end == 2000 && i >= 1000;
                            case 3 -> end == 3500 && i >= 500;
                            default -> false;
                        };
                assertTrue(possible, "outcome " + outcome + " byte " + i + " is " + content[i]);
            }
        }
        assertEquals(Set.of(500, 1000, 2000, 3500), lengths);
    }

    @Test
    void namesAreLostWithoutASyncOfTheirDirectory() {
        DiskProbe.durable(disk, "/d/old", 10, 1);
        DiskProbe.durable(disk, "/d/gone", 10, 1);
        DiskFile file = disk.create("/d/new");
        DiskProbe.write(file, 0, "x");
        file.sync();
        disk.rename("/d/old", "/d/moved");
        disk.unlink("/d/gone");
        SimulatedDisk lost = disk.restart(SimulatedDisk.LOSE_ALL);
        assertEquals(Set.of("old", "gone"), Set.copyOf(lost.list("/d")));
        Set<Set<String>> found = new HashSet<>();
        for (int outcome = 2; outcome < 300; outcome++) {
            Set<String> names = Set.copyOf(disk.restart(outcome).list("/d"));
            assertTrue(names.contains("old") != names.contains("moved"), "a rename is whole");
            found.add(names);
        }
        assertEquals(8, found.size());
    }

    @Test
    void aSyncOfADirectoryKeepsItsNamesAndNoBytes() {
        DiskFile file = disk.create("/d/new");
        DiskProbe.write(file, 0, "x");
        disk.syncDirectory("/d");
        assertEquals(0, disk.found(SimulatedDisk.LOSE_ALL).content("/d/new").length);
        disk.unlink("/d/new");
        disk.syncDirectory("/d");
        assertNull(disk.restart(SimulatedDisk.LOSE_ALL).content("/d/new"));
    }

    @Test
    void aRenameIntoASyncedDirectoryTakesItsOldNameWithIt() {
        disk.directories("/e");
        DiskProbe.durable(disk, "/d/a", 10, 1);
        disk.rename("/d/a", "/e/b");
        disk.syncDirectory("/e");
        SimulatedDisk found = disk.restart(SimulatedDisk.LOSE_ALL);
        assertNull(found.content("/d/a"));
        assertEquals(10, found.content("/e/b").length);
    }

    @Test
    void withAJournalNamesAndLengthsLandInOrder() {
        disk.orderedMetadata(true);
        DiskFile file = DiskProbe.durable(disk, "/d/log", 0, 0);
        disk.create("/d/1").close();
        DiskProbe.write(file, 0, "a");
        disk.create("/d/2").close();
        DiskProbe.write(file, 1, "b");
        Set<String> found = new TreeSet<>();
        for (int outcome = 0; outcome < 200; outcome++) {
            SimulatedDisk then = disk.restart(outcome);
            found.add(then.list("/d").size() + " names, " + then.content("/d/log").length);
        }
        assertEquals(
                Set.of("1 names, 0", "2 names, 0", "2 names, 1", "3 names, 1", "3 names, 2"),
                found);
    }

    @Test
    void aFailedSyncDropsDirtyPagesAndTheNextOneReportsSuccess() {
        Set<String> states = new TreeSet<>();
        for (int seed = 0; seed < 30; seed++) {
            SimulatedDisk one = new SimulatedDisk(seed).directories("/d");
            DiskFile file = DiskProbe.durable(one, "/d/a", 4 * PAGE, 1);
            one.plan(Fault.at(Effect.EIO, DiskCall.SYNC, 1));
            DiskProbe.write(file, 0, 4 * PAGE, 2);
            assertEquals(DiskException.EIO, assertThrows(DiskException.class, file::sync).errno());
            file.sync();
            byte[] seen = one.content("/d/a");
            byte[] found = one.restart(SimulatedDisk.KEEP_ALL).content("/d/a");
            for (int i = 0; i < seen.length; i += SECTOR) {
                states.add(seen[i] + "" + found[i]);
            }
        }
        assertTrue(
                states.contains("21") && states.contains("11") && states.contains("22"),
                "read from the cache but lost, read as before, and landed: " + states);
        assertFalse(states.contains("12"));
    }

    @Test
    void droppedPagesMayAllBeLostAtOnce() {
        disk.droppedPages(SimulatedDisk.LOSE_ALL).plan(Fault.at(Effect.EIO, DiskCall.CLOSE, 1));
        DiskFile file = DiskProbe.durable(disk, "/d/a", PAGE, 1);
        DiskProbe.write(file, 0, PAGE, 2);
        assertThrows(DiskException.class, file::close);
        DiskFile again = disk.open("/d/a");
        assertArrayEquals(new byte[] {1}, DiskProbe.read(again, 0, 1));
        again.sync();
        DiskProbe.write(again, SECTOR, SECTOR, 3);
        again.sync();
        byte[] found = disk.restart(SimulatedDisk.LOSE_ALL).content("/d/a");
        assertEquals(1, found[0]);
        assertEquals(3, found[SECTOR]);
    }

    @Test
    void aFullDiskStoresWholeSectorsAndHasRoomAgainAfterAFileIsGone() {
        DiskFile big = DiskProbe.durable(disk, "/d/big", PAGE, 1);
        disk.room(3584 + 100);
        DiskFile file = disk.create("/d/a");
        DiskException e =
                assertThrows(DiskException.class, () -> DiskProbe.write(file, 0, PAGE, 2));
        assertEquals(DiskException.ENOSPC, e.errno());
        assertTrue(e.mayRetry());
        assertEquals(3584, file.size());
        DiskProbe.write(file, 0, 3584, 3);
        DiskProbe.write(big, 0, PAGE, 3);
        disk.unlink("/d/big");
        assertThrows(DiskException.class, () -> DiskProbe.write(file, 0, PAGE, 2));
        big.close();
        DiskProbe.write(file, 0, PAGE, 2);
        file.truncate(0);
        DiskProbe.write(file, 0, PAGE + 3584, 2);
        assertThrows(DiskException.class, () -> DiskProbe.write(file, 2 * PAGE, SECTOR, 2));
    }

    @Test
    void plannedFaultsHappenAtTheirCallAndOnTheirPath() {
        disk.plan(
                Fault.at(Effect.SHORT, DiskCall.WRITE, 2),
                Fault.at(Effect.SHORT, DiskCall.READ, 2),
                new Fault(Effect.EIO, DiskCall.WRITE, 1, "/b"),
                Fault.at(Effect.EMFILE, DiskCall.OPEN, 1),
                Fault.at(Effect.ENOSPC, DiskCall.SYNC_DIRECTORY, 1),
                Fault.at(Effect.IGNORED, DiskCall.SYNC, 1));
        DiskFile a = disk.create("/d/a");
        DiskFile b = disk.create("/d/b");
        DiskProbe.write(a, 0, PAGE, 1);
        DiskException full =
                assertThrows(DiskException.class, () -> DiskProbe.write(a, 0, PAGE, 2));
        assertEquals(DiskException.ENOSPC, full.errno());
        assertEquals(1, disk.content("/d/a")[PAGE - 1]);
        DiskException io = assertThrows(DiskException.class, () -> DiskProbe.write(b, 0, PAGE, 1));
        assertEquals(DiskException.EIO, io.errno());
        assertTrue(b.size() < PAGE);
        DiskProbe.write(b, 0, PAGE, 1);
        assertEquals(PAGE, DiskProbe.read(a, 0, PAGE).length);
        assertTrue(DiskProbe.read(a, 0, PAGE).length < PAGE, "a short read");
        assertEquals(24, assertThrows(DiskException.class, () -> disk.open("/d/a")).errno());
        disk.open("/d/a").close();
        assertThrows(DiskException.class, () -> disk.syncDirectory("/d"));
        assertNull(disk.restart(SimulatedDisk.LOSE_ALL).content("/d/a"));
    }

    @Test
    void anIgnoredSyncSavesNothing() {
        disk.plan(Fault.at(Effect.IGNORED, DiskCall.SYNC, 0));
        DiskProbe.durable(disk, "/d/a", PAGE, 1);
        assertEquals(0, disk.restart(SimulatedDisk.LOSE_ALL).content("/d/a").length);
    }

    @Test
    void aCrashAtTheNthCallEndsTheDiskForAllItsHandles() {
        disk.plan(Fault.crashAtCall(4));
        DiskFile file = disk.create("/d/a");
        DiskProbe.write(file, 0, "abc");
        file.sync();
        assertThrows(SimulatedCrash.class, () -> disk.syncDirectory("/d"));
        assertThrows(SimulatedCrash.class, file::size);
        assertThrows(SimulatedCrash.class, () -> disk.exists("/d"));
        assertEquals(4, disk.count(DiskCall.ANY));
        assertEquals(4, disk.count(DiskCall.CHANGE));
        assertNull(disk.restart(SimulatedDisk.LOSE_ALL).content("/d/a"));
        SimulatedDisk found = disk.restart(SimulatedDisk.KEEP_ALL);
        assertEquals("abc", DiskProbe.text(found, "/d/a"));
        found.unlink("/d/a");
        assertThrows(SimulatedCrash.class, file::close);
        assertNotNull(disk.restart(SimulatedDisk.KEEP_ALL).content("/d/a"), "SD-6");
        assertTrue(disk.lastCalls(9).contains("#4 SYNC_DIRECTORY /d -> CRASH"), disk.lastCalls(9));
    }

    @Test
    void theSameSeedGivesTheSameRun() {
        List<String> logs = new ArrayList<>();
        for (long seed : new long[] {7, 7, 8}) {
            SimulatedDisk one = new SimulatedDisk(seed).directories("/d");
            one.chance(DiskCall.ANY, 0.2, Effect.EIO);
            StringBuilder log = new StringBuilder();
            for (int i = 0; i < 200; i++) {
                try (DiskFile file = one.openOrCreate("/d/" + i % 7)) {
                    DiskProbe.write(file, i * 100, 700, i);
                    if (i % 5 == 0) {
                        file.sync();
                    }
                } catch (DiskException e) {
                    log.append(i).append(' ').append(e.errno()).append('\n');
                }
            }
            log.append(one.faultsByChance());
            SimulatedDisk found = one.restart();
            for (int i = 0; i < 7; i++) {
                log.append(java.util.Arrays.hashCode(found.content("/d/" + i))).append(' ');
            }
            logs.add(log.toString());
        }
        assertEquals(logs.get(0), logs.get(1), "SD-5");
        assertFalse(logs.get(0).equals(logs.get(2)));
    }

    @Test
    void itAnswersAsAPosixDiskDoes() {
        assertNull(disk.openIfExists("/d/a"));
        assertNull(disk.openReadOnly("/d/x/a"));
        assertThrows(DiskException.class, () -> disk.open("/d/a"));
        DiskFile file = disk.create("d/a");
        assertEquals(
                DiskException.EEXIST,
                assertThrows(DiskException.class, () -> disk.create("/d/a")).errno());
        assertEquals(20, assertThrows(DiskException.class, () -> disk.create("/d/a/b")).errno());
        assertFalse(disk.exists("/d/a/b"));
        assertEquals(
                DiskException.ENOENT,
                assertThrows(DiskException.class, () -> disk.create("/no/a")).errno());
        DiskProbe.write(file, 2 * PAGE + 5, "xyz");
        assertEquals(2 * PAGE + 8, file.size());
        assertEquals(0, DiskProbe.read(file, PAGE, 1)[0]);
        assertEquals(3, DiskProbe.read(file, 2 * PAGE + 5, 100).length);
        assertEquals(0, DiskProbe.read(file, 1L << 40, 100).length);
        assertFalse(disk.createDirectory("/d"));
        assertTrue(disk.createDirectory("/d/sub"));
        assertEquals(
                39, assertThrows(DiskException.class, () -> disk.removeDirectory("/d")).errno());
        assertTrue(disk.removeDirectory("/d/sub"));
        assertFalse(disk.removeDirectory("/d/sub"));
        assertTrue(disk.isDirectory("/d") && !disk.isDirectory("/d/a"));
        assertEquals(List.of("a"), disk.list("/d"));
        assertEquals(List.of(), disk.list("/none"));
        disk.rename("/d/a", "/d/b");
        assertFalse(disk.unlink("/d/a"));
        DiskFile readOnly = disk.openReadOnly("/d/b");
        assertEquals(
                9,
                assertThrows(DiskException.class, () -> DiskProbe.write(readOnly, 0, "x")).errno());
        assertTrue(disk.unlink("/d/b"));
        assertEquals(3, DiskProbe.read(file, 2 * PAGE + 5, 100).length, "open files stay readable");
        file.close();
        file.close();
        assertEquals(9, assertThrows(DiskException.class, file::size).errno());
    }

    /** SD-6 and the lock: each of many threads finds what it synced before the crash. */
    @Test
    void threadsAtWorkWhenItCrashesLoseNothingThatTheySynced() throws Exception {
        for (int seed = 0; seed < 20; seed++) {
            SimulatedDisk one = new SimulatedDisk(seed).directories("/d");
            one.plan(Fault.crashAtCall(400 + 37 * seed));
            int[] synced = new int[4];
            List<Thread> threads = new ArrayList<>();
            Set<Throwable> ends = ConcurrentHashMap.newKeySet();
            for (int number = 0; number < synced.length; number++) {
                int mine = number;
                threads.add(
                        Thread.ofPlatform()
                                .uncaughtExceptionHandler((thread, e) -> ends.add(e))
                                .start(() -> appendAndSync(one, mine, synced)));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(Set.of(), ends);
            SimulatedDisk found = one.restart();
            for (int number = 0; number < synced.length; number++) {
                byte[] content = found.content("/d/" + number);
                int length = content == null ? 0 : content.length;
                assertTrue(length >= 100 * synced[number], "seed " + seed);
                for (int i = 0; i < 100 * synced[number]; i++) {
                    assertEquals((byte) (i / 100), content[i], "seed " + seed + " byte " + i);
                }
            }
        }
    }

    private static void appendAndSync(SimulatedDisk disk, int number, int[] synced) {
        try {
            DiskFile file = disk.create("/d/" + number);
            disk.syncDirectory("/d");
            for (int i = 0; ; i++) {
                DiskProbe.write(file, 100 * i, 100, i);
                file.sync();
                synced[number] = i + 1;
            }
        } catch (SimulatedCrash e) {
            // The machine is gone.
        }
    }
}
