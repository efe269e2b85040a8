package org.pgkernel.testkit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.testkit.Fault.Effect;

/**
 * A search finds what a workload forgets, and tells the plainest run that shows it; what the
 * workload does right passes.
 */
class CrashSearchTest {
    private static final SimulatedDisk TEMPLATE = new SimulatedDisk(0).directories("/d");

    /**
     * A file replaced as a whole, over and over; its reader wants one of the versions that it was
     * promised.
     */
    private static class Replacing implements CrashSearch.Run {
        final boolean syncsFile;
        final boolean syncsDirectory;
        int promised = -1;
        int begun = -1;

        Replacing(boolean syncsFile, boolean syncsDirectory) {
            this.syncsFile = syncsFile;
            this.syncsDirectory = syncsDirectory;
        }

        @Override
        public void workload(SimulatedDisk disk) {
            for (int version = 0; version < 4; version++) {
                begun = version;
                disk.unlink("/d/new");
                try (DiskFile file = disk.create("/d/new")) {
                    DiskProbe.write(file, 0, "version " + version);
                    if (syncsFile) {
                        file.sync();
                    }
                }
                disk.rename("/d/new", "/d/file");
                if (syncsDirectory) {
                    disk.syncDirectory("/d");
                }
                promised = version;
            }
        }

        @Override
        public void verify(SimulatedDisk found) {
            String text = DiskProbe.text(found, "/d/file");
            boolean right = text == null && promised < 0;
            for (int version = Math.max(0, promised); version <= begun; version++) {
                right |= ("version " + version).equals(text);
            }
            assertTrue(right, "promised version " + promised + ", found: " + text);
        }
    }

    @Test
    void whatIsDoneRightSurvivesEveryCrash() {
        int runs =
                CrashSearch.of("right", TEMPLATE, () -> new Replacing(true, true))
                        .outcomes(20)
                        .run();
        assertEquals(1 + 22 * 24, runs);
    }

    @Test
    void aRenameWithoutSyncOfTheDirectoryIsFoundAndTold() {
        AssertionError e =
                searchFails(CrashSearch.of("name", TEMPLATE, () -> new Replacing(true, false)));
        assertTrue(
                e.getMessage().contains("'name;seed=1;faults=;outcome=0;again='"), e.getMessage());
        assertTrue(e.getCause().getMessage().contains("promised version 3, found: null"));
        assertTrue(e.getMessage().contains("RENAME /d/file"), "the last calls");
    }

    @Test
    void aRenameWithoutSyncOfTheFileIsReducedToOneCrash() {
        AssertionError e =
                searchFails(CrashSearch.of("bytes", TEMPLATE, () -> new Replacing(false, true)));
        String line = e.getMessage().replaceAll("(?s).*'(bytes;[^']*)'.*", "$1");
        assertEquals("bytes;seed=1;faults=;outcome=0;again=", line);
        assertThrows(
                AssertionError.class,
                () ->
                        replay(
                                line,
                                CrashSearch.of(
                                        "bytes", TEMPLATE, () -> new Replacing(false, true))));
        assertEquals(
                1,
                replay(line, CrashSearch.of("bytes", TEMPLATE, () -> new Replacing(true, true))));
    }

    @Test
    void aCrashThatMattersStaysAndMovesToTheEarliestPlace() {
        CrashSearch search =
                CrashSearch.of(
                        "late",
                        TEMPLATE,
                        () ->
                                new Replacing(true, true) {
                                    @Override
                                    public void verify(SimulatedDisk found) {
                                        super.verify(found);
                                        assertTrue(begun == 3 || begun < 1, "half-way");
                                    }
                                });
        String message = searchFails(search).getMessage();
        assertTrue(message.contains("faults=CRASH@CHANGE#7;outcome=0;"), message);
    }

    @Test
    void faultsByChanceAreReducedToTheOneThatMatters() {
        CrashSearch search =
                CrashSearch.of(
                                "retry",
                                TEMPLATE,
                                () ->
                                        new Replacing(true, true) {
                                            @Override
                                            public void workload(SimulatedDisk disk) {
                                                DiskFile file = disk.create("/d/file");
                                                DiskProbe.write(file, 0, "version 0");
                                                disk.syncDirectory("/d");
                                                for (int i = 0; i < 30; i++) {
                                                    disk.exists("/d");
                                                }
                                                try {
                                                    file.sync();
                                                } catch (DiskException e) {
                                                    // Wrong: the second try proves nothing.
                                                    file.sync();
                                                }
                                                begun = promised = 0;
                                            }
                                        })
                        .seeds(50)
                        .mostCrashes(0)
                        .prepare(
                                disk ->
                                        disk.droppedPages(SimulatedDisk.LOSE_ALL)
                                                .chance(DiskCall.SYNC, 0.3, Effect.EIO)
                                                .chance(DiskCall.WRITE, 0, Effect.EIO));
        String message = searchFails(search).getMessage();
        assertTrue(message.contains(";faults=EIO@SYNC#1;outcome=0;again="), message);
    }

    @Test
    void aRecoveryThatDoesNotSurviveItsOwnCrashIsFound() {
        class Logged extends Replacing {
            Logged() {
                super(true, true);
            }

            @Override
            public void verify(SimulatedDisk found) {
                // Wrong: takes the file away before another one is there.
                if (promised >= 0) {
                    found.unlink("/d/new");
                    found.rename("/d/file", "/d/new");
                    found.syncDirectory("/d");
                    found.rename("/d/new", "/d/file");
                    found.syncDirectory("/d");
                }
                super.verify(found);
            }
        }
        String message =
                searchFails(
                                CrashSearch.of("recovery", TEMPLATE, Logged::new)
                                        .crashesInRecovery(Integer.MAX_VALUE))
                        .getMessage();
        assertTrue(message.contains("again=CRASH@CHANGE#"), message);
    }

    /** The same, with what it knows at a crash kept, so that its workload is run but once. */
    private static final class Kept extends Replacing {
        static int workloads;

        Kept(boolean syncsFile, boolean syncsDirectory) {
            super(syncsFile, syncsDirectory);
        }

        @Override
        public void workload(SimulatedDisk disk) {
            workloads++;
            super.workload(disk);
        }

        @Override
        public CrashSearch.Run ifCrashedNow() {
            Kept then = new Kept(syncsFile, syncsDirectory);
            then.promised = promised;
            then.begun = begun;
            return then;
        }
    }

    @Test
    void aWorkloadThatTellsWhatItKnowsIsRunTwiceForAllItsCrashes() {
        Kept.workloads = 0;
        CrashSearch search =
                CrashSearch.of("kept", TEMPLATE, () -> new Kept(true, true)).outcomes(20);
        assertEquals(1 + 22 * 24, search.run());
        assertEquals(22 * 24, search.crashes());
        assertEquals(2, Kept.workloads);
    }

    @Test
    void whatItFindsIsToldAsIfItHadBeenRunAgain() {
        class LateDirectory extends Replacing {
            final boolean keeps;

            LateDirectory(boolean keeps) {
                super(true, false);
                this.keeps = keeps;
            }

            @Override
            public void workload(SimulatedDisk disk) {
                super.workload(disk);
                disk.syncDirectory("/d");
            }

            @Override
            public CrashSearch.Run ifCrashedNow() {
                LateDirectory then = new LateDirectory(keeps);
                then.promised = promised;
                then.begun = begun;
                return keeps ? then : null;
            }
        }
        String kept =
                searchFails(CrashSearch.of("late", TEMPLATE, () -> new LateDirectory(true)))
                        .getMessage();
        String again =
                searchFails(CrashSearch.of("late", TEMPLATE, () -> new LateDirectory(false)))
                        .getMessage();
        assertTrue(kept.contains("faults=CRASH@CHANGE#"), kept);
        assertEquals(again, kept);
    }

    @Test
    void aLineIsReadAsItWasWritten() {
        String line =
                "a b;seed=-3;faults=CRASH@CHANGE#12,EIO@SYNC#0:base/5;outcome=9;again=SHORT@READ#1";
        assertEquals(line, CrashTrial.parse(line).toString());
        assertThrows(IllegalArgumentException.class, () -> CrashTrial.parse("a;seed=1"));
        assertThrows(IllegalArgumentException.class, () -> Fault.parse("SHORT@SYNC#1"));
    }

    private static AssertionError searchFails(CrashSearch search) {
        return assertThrows(AssertionError.class, search::run);
    }

    private static int replay(String line, CrashSearch search) {
        System.setProperty(CrashSearch.PROPERTY, line);
        try {
            return search.run();
        } finally {
            System.clearProperty(CrashSearch.PROPERTY);
        }
    }
}
