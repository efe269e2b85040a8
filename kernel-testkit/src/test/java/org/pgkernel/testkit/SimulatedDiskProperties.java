package org.pgkernel.testkit;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.disk.DiskFile;

/**
 * Any calls, crashes and restarts against plain arrays of bytes: without a crash the disk is a map
 * of names to bytes; after one, each name, length and sector is one of those since its last sync.
 */
class SimulatedDiskProperties {
    private static final String[] DIRECTORIES = {"/d", "/d/e"};
    private static final String[] NAMES = {"/d/a", "/d/b", "/d/e/a", "/d/e/b"};
    private static final int SECTOR = 512;

    private enum Kind {
        CREATE,
        WRITE,
        WRITE_AGAIN,
        TRUNCATE,
        SYNC,
        UNLINK,
        RENAME,
        SYNC_DIRECTORY,
        CRASH
    }

    /**
     * @param name which one, of {@link #NAMES}
     * @param amount an offset, a length, or a second name
     */
    private record Step(Kind kind, int name, int amount) {}

    @Provide
    Arbitrary<List<Step>> steps() {
        return Combinators.combine(
                        Arbitraries.frequency(
                                Tuple.of(6, Kind.CREATE),
                                Tuple.of(8, Kind.WRITE),
                                Tuple.of(4, Kind.WRITE_AGAIN),
                                Tuple.of(3, Kind.TRUNCATE),
                                Tuple.of(4, Kind.SYNC),
                                Tuple.of(2, Kind.UNLINK),
                                Tuple.of(3, Kind.RENAME),
                                Tuple.of(4, Kind.SYNC_DIRECTORY),
                                Tuple.of(2, Kind.CRASH)),
                        Arbitraries.integers().between(0, NAMES.length - 1),
                        Arbitraries.integers().between(0, 40_000))
                .as(Step::new)
                .list()
                .ofMinSize(5)
                .ofMaxSize(60);
    }

    @Property(tries = 1500)
    void theDiskIsAMapOfBytesUntilACrashAndOneOfItsPastsAfterIt(
            @ForAll("steps") List<Step> steps, @ForAll boolean ordered, @ForAll long seed) {
        Model model = new Model(new SimulatedDisk(seed).orderedMetadata(ordered));
        for (Step step : steps) {
            model.apply(step);
        }
        model.crash();
    }

    /** The property can fail: a disk whose syncs do nothing does not keep what it promised. */
    @ParameterizedTest
    @EnumSource(
            value = DiskCall.class,
            names = {"SYNC", "SYNC_DIRECTORY"})
    void aDiskThatIgnoresSyncsIsCaught(DiskCall call) {
        for (int seed = 1; seed < 500; seed++) {
            Chance chance = new Chance(seed, 0);
            Model model = new Model(new SimulatedDisk(seed));
            model.disk.plan(Fault.at(Fault.Effect.IGNORED, call, 0));
            try {
                for (int i = 0; i < 40; i++) {
                    Kind kind = Kind.values()[chance.next(Kind.CRASH.ordinal())];
                    model.apply(new Step(kind, chance.next(NAMES.length), chance.next(40_000)));
                }
                model.crash();
            } catch (AssertionError e) {
                return;
            }
        }
        fail("not caught");
    }

    /** All that a file may turn out to hold: its bytes after each change since its last sync. */
    private static final class ModelFile {
        final List<byte[]> past = new ArrayList<>();

        ModelFile(byte[] bytes) {
            past.add(bytes);
        }

        byte[] now() {
            return past.getLast();
        }

        boolean mayBe(byte[] found) {
            if (past.stream().noneMatch(bytes -> bytes.length == found.length)) {
                return false;
            }
            for (int from = 0; from < found.length; from += SECTOR) {
                byte[] sector = sector(found, from);
                int place = from;
                if (past.stream().noneMatch(bytes -> mayBe(sector, bytes, place))) {
                    return false;
                }
            }
            return true;
        }

        /** A version, or one that was cut at a length that the file had. */
        private boolean mayBe(byte[] sector, byte[] version, int from) {
            byte[] whole = sector(version, from);
            if (Arrays.equals(sector, whole)) {
                return true;
            }
            for (byte[] other : past) {
                int kept = Math.clamp(other.length - from, 0, SECTOR);
                byte[] cut = Arrays.copyOf(Arrays.copyOf(whole, kept), SECTOR);
                if (Arrays.equals(sector, cut)) {
                    return true;
                }
            }
            return false;
        }

        private static byte[] sector(byte[] bytes, int from) {
            return from >= bytes.length
                    ? new byte[SECTOR]
                    : Arrays.copyOfRange(bytes, from, from + SECTOR);
        }
    }

    private static final class Model {
        private SimulatedDisk disk;

        /** What each name stood for since the last sync of its directory; null for nothing. */
        private final Map<String, List<ModelFile>> names = new HashMap<>();

        private int fill;

        Model(SimulatedDisk disk) {
            this.disk = disk.directories(DIRECTORIES);
            for (String name : NAMES) {
                names.put(name, new ArrayList<>(Arrays.asList((ModelFile) null)));
            }
        }

        void apply(Step step) {
            String name = NAMES[step.name];
            ModelFile file = names.get(name).getLast();
            fill = fill % 120 + 1;
            switch (step.kind) {
                case CREATE -> {
                    disk.openOrCreate(name).close();
                    if (file == null) {
                        names.get(name).add(new ModelFile(new byte[0]));
                    }
                }
                case UNLINK -> {
                    assertEquals(file != null, disk.unlink(name));
                    names.get(name).add(null);
                }
                case SYNC_DIRECTORY -> {
                    String directory = DIRECTORIES[step.name % 2];
                    disk.syncDirectory(directory);
                    settleNames(directory);
                }
                case CRASH -> crash();
                case RENAME -> rename(name, NAMES[step.amount % NAMES.length]);
                default -> {
                    if (file != null) {
                        change(step, name, file);
                    }
                }
            }
            check();
        }

        private void rename(String from, String to) {
            ModelFile file = names.get(from).getLast();
            if (file != null && !from.equals(to)) {
                disk.rename(from, to);
                names.get(from).add(null);
                names.get(to).add(file);
            }
        }

        private void change(Step step, String name, ModelFile file) {
            try (DiskFile handle = disk.open(name)) {
                byte[] now = file.now();
                switch (step.kind) {
                    case WRITE, WRITE_AGAIN -> {
                        int offset =
                                step.kind == Kind.WRITE
                                        ? now.length
                                        : step.amount % (now.length + 1);
                        int length = 1 + step.amount % 9_000;
                        DiskProbe.write(handle, offset, length, fill);
                        byte[] then = Arrays.copyOf(now, Math.max(now.length, offset + length));
                        Arrays.fill(then, offset, offset + length, (byte) fill);
                        file.past.add(then);
                    }
                    case TRUNCATE -> {
                        int length = step.amount % (now.length * 5 / 4 + 1);
                        handle.truncate(length);
                        file.past.add(Arrays.copyOf(now, length));
                    }
                    case SYNC -> {
                        handle.sync();
                        file.past.subList(0, file.past.size() - 1).clear();
                    }
                    default -> throw new AssertionError(step);
                }
            }
        }

        /**
         * What a sync of a directory settles: its own names. That it settles names elsewhere, too,
         * those that a rename ties to it, is allowed and not relied upon here.
         */
        private void settleNames(String directory) {
            names.forEach(
                    (name, past) -> {
                        if (name.substring(0, name.lastIndexOf('/')).equals(directory)) {
                            past.subList(0, past.size() - 1).clear();
                        }
                    });
        }

        void crash() {
            disk = disk.restart();
            for (String name : NAMES) {
                byte[] found = disk.content(name);
                List<ModelFile> past = names.get(name);
                if (found == null) {
                    assertTrue(past.contains(null), () -> name + " is gone");
                    past.clear();
                    past.add(null);
                } else {
                    assertTrue(
                            past.stream().anyMatch(file -> file != null && file.mayBe(found)),
                            () -> name + " never held what was found");
                    past.clear();
                    past.add(new ModelFile(found));
                }
            }
        }

        private void check() {
            for (String name : NAMES) {
                ModelFile file = names.get(name).getLast();
                assertArrayEquals(file == null ? null : file.now(), disk.content(name), name);
            }
        }
    }
}
