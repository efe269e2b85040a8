package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.testkit.CrashSearch;
import org.pgkernel.testkit.DiskCall;
import org.pgkernel.testkit.Fault.Effect;
import org.pgkernel.testkit.ForwardingDisk;

/**
 * Sync handling with a fault each: the check of {@link CrashProperties} finds every one of them, by
 * what redo could not bring back. A fault that lies in what the manager asks of the disk is planted
 * in the disk, one in the bookkeeping in the requests.
 */
@Timeout(120)
class SyncMutantsTest {
    private static final int RUNS = 400;

    /** What is wrong; {@link MutantParts} does it. */
    enum Mutant {
        /** What is queued while the sync phase is at work is taken for done. */
        QUEUED_DURING_PROCESS_FORGOTTEN,
        /** Only a fork's first segment is synced. */
        SEGMENT_ABOVE_THE_FIRST_NOT_QUEUED,
        /** The cut of a segment is not queued. */
        TRUNCATION_NOT_QUEUED,
        /** R14: nobody makes the names of new files durable. */
        DIRECTORY_NOT_QUEUED,
        /** The removal of files is not durable when their number is free again. */
        REMOVAL_NOT_QUEUED,
        /** C08: an error of close is passed over. */
        CLOSE_ERROR_IGNORED,
        /** C08: a failed sync is tried again, and "succeeds". */
        SYNC_TRIED_AGAIN,
        /** An immediate sync leaves the file's name to the next checkpoint. */
        IMMEDIATE_SYNC_WITHOUT_NAME,
        /**
         * SMGR-10: what a lost cut or removal has left of the next segment becomes part of a fork.
         */
        LEFTOVER_TAKEN_OVER
    }

    @ParameterizedTest
    @EnumSource(Mutant.class)
    void everyMutantIsCaught(Mutant mutant) {
        for (int seed = 0; seed < RUNS; seed++) {
            String found = run(mutant, seed);
            if (found != null) {
                assertTrue(found.contains("-D" + CrashSearch.PROPERTY + "='"), found);
                return;
            }
        }
        fail(mutant + " survived " + RUNS + " searches");
    }

    /** The same searches pass without a fault, so it is the fault that is caught. */
    @Test
    void handlingWithoutAFaultIsNot() {
        for (int seed = 0; seed < RUNS; seed++) {
            String found = run(null, seed);
            if (found != null) {
                fail("seed " + seed + ": " + found);
            }
        }
    }

    /**
     * @return what the search found, or null
     */
    private static String run(Mutant mutant, int seed) {
        CrashSearch search =
                CrashRun.search(
                                "mutant-" + mutant,
                                CrashRun.Step.random(seed, 40),
                                seed % 4 == 3,
                                SizePolicy.values()[seed / 4 % 2],
                                () -> new MutantParts(mutant))
                        .seed(seed)
                        .mostCrashes(10)
                        .outcomes(1)
                        .prepare(
                                disk ->
                                        disk.chance(DiskCall.SYNC, 0.02, Effect.EIO)
                                                .chance(DiskCall.CLOSE, 0.05, Effect.EIO));
        try {
            search.run();
            return null;
        } catch (AssertionError e) {
            return e.getMessage();
        }
    }

    private static final class MutantParts extends CrashRun.Parts {
        private final Mutant mutant;

        /** The last change on the disk was of this kind. */
        private DiskCall last = DiskCall.LOOK;

        /** The sync phase is at work. */
        private boolean atWork;

        MutantParts(Mutant mutant) {
            this.mutant = mutant;
        }

        @Override
        Disk disk(Disk disk) {
            return mutant == null ? disk : new MutantDisk(disk);
        }

        @Override
        SyncRequests requests(Disk disk) {
            return mutant == null ? super.requests(disk) : new MutantRequests(disk);
        }

        private final class MutantDisk extends ForwardingDisk {
            MutantDisk(Disk disk) {
                super(disk);
            }

            @Override
            protected DiskFile opened(DiskFile file) {
                return new MutantFile(file);
            }

            @Override
            public DiskFile openIfExists(String path) {
                return mutant == Mutant.LEFTOVER_TAKEN_OVER && !atWork && isBehindTheEnd(path)
                        ? null
                        : super.openIfExists(path);
            }

            /** Such a segment is opened to be emptied only. */
            private boolean isBehindTheEnd(String path) {
                int dot = path.lastIndexOf('.');
                if (dot < 0) {
                    return false;
                }
                int number = Integer.parseInt(path.substring(dot + 1));
                String first = path.substring(0, dot);
                try (DiskFile lower =
                        super.openIfExists(number == 1 ? first : first + "." + (number - 1))) {
                    return lower != null
                            && lower.size() < (long) CrashRun.SEGMENT * BlockNumber.PAGE_SIZE;
                }
            }

            @Override
            public DiskFile create(String path) {
                last = DiskCall.CREATE;
                return super.create(path);
            }

            @Override
            public DiskFile openOrCreate(String path) {
                last = DiskCall.CREATE;
                return super.openOrCreate(path);
            }

            @Override
            public boolean unlink(String path) {
                last = DiskCall.UNLINK;
                return super.unlink(path);
            }

            @Override
            public void syncDirectory(String path) {
                // The immediate sync of a file is followed by that of its directory.
                if (mutant != Mutant.IMMEDIATE_SYNC_WITHOUT_NAME || last != DiskCall.WRITE) {
                    super.syncDirectory(path);
                }
            }
        }

        private final class MutantFile extends ForwardingDisk.ForwardingFile {
            MutantFile(DiskFile file) {
                super(file);
            }

            @Override
            public void write(long address, int length, long offset) {
                last = DiskCall.WRITE;
                super.write(address, length, offset);
            }

            @Override
            public void truncate(long size) {
                last = DiskCall.TRUNCATE;
                super.truncate(size);
            }

            @Override
            public void sync() {
                try {
                    super.sync();
                } catch (DiskException e) {
                    if (mutant != Mutant.SYNC_TRIED_AGAIN) {
                        throw e;
                    }
                    super.sync();
                }
            }

            @Override
            public void close() {
                try {
                    super.close();
                } catch (DiskException e) {
                    if (mutant != Mutant.CLOSE_ERROR_IGNORED) {
                        throw e;
                    }
                }
            }
        }

        private final class MutantRequests extends SyncRequests {
            MutantRequests(Disk disk) {
                super(disk, CrashRun.DIRECTORY);
            }

            @Override
            public int process() {
                atWork = true;
                try {
                    return super.process();
                } finally {
                    atWork = false;
                }
            }

            @Override
            public void register(int spcOid, int dbOid, int relNumber, int fork, int segment) {
                boolean forgotten =
                        switch (mutant) {
                            case QUEUED_DURING_PROCESS_FORGOTTEN -> atWork;
                            case TRUNCATION_NOT_QUEUED -> last == DiskCall.TRUNCATE;
                            case SEGMENT_ABOVE_THE_FIRST_NOT_QUEUED -> segment > 0;
                            default -> false;
                        };
                if (!forgotten) {
                    super.register(spcOid, dbOid, relNumber, fork, segment);
                }
            }

            @Override
            void registerDirectory(int spcOid, int dbOid) {
                boolean forgotten =
                        switch (mutant) {
                            case DIRECTORY_NOT_QUEUED -> last == DiskCall.CREATE;
                            case REMOVAL_NOT_QUEUED -> last == DiskCall.UNLINK;
                            default -> false;
                        };
                if (!forgotten) {
                    super.registerDirectory(spcOid, dbOid);
                }
            }
        }
    }
}
