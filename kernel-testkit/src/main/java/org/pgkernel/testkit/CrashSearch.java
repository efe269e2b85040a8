package org.pgkernel.testkit;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Looks for a crash that a workload does not survive: runs it over a {@link SimulatedDisk} crashed
 * at its every change, or at a sample of them, in several outcomes, and lets it verify what is
 * found. Fails with the plainest failing run that it can reach from the first one, told as one
 * line; {@code -Dpgkernel.crash=LINE} runs that one alone.
 *
 * <p>The search is deterministic if the workload is: the same workload fails in the same way, so
 * that jqwik can shrink it from outside. With several threads at work a line may not repeat a run,
 * but what was found is a real state of the disk.
 */
public final class CrashSearch {
    /** The property that holds a line to run again. */
    public static final String PROPERTY = "pgkernel.crash";

    private static final int MOST_SHRINK_RUNS = 2_000;
    private static final int TRACE = 20;

    /** One run; a new object for each, which may remember what it did. */
    public interface Run {
        /**
         * Works until it is done or {@link SimulatedCrash} ends it, which it lets through. Faults
         * other than crashes reach it as errors of the disk; it decides which it goes on after.
         */
        void workload(SimulatedDisk disk);

        /**
         * Recovers and checks what is there. Called again, on another disk, when the recovery is
         * crashed, too.
         */
        void verify(SimulatedDisk found);

        /**
         * A run whose {@link #verify} checks what this one's would check if the crash came now,
         * whatever the workload does from here on. Called in the middle of a call on the disk.
         *
         * @return null if there is no such thing: the workload is then run again for each crash
         */
        default Run ifCrashedNow() {
            return null;
        }

        /**
         * Of a disk that was recovered and checked, the changes after which a crash is a crash in
         * recovery.
         */
        default long changesOfRecovery(SimulatedDisk found) {
            return found.count(DiskCall.CHANGE);
        }
    }

    private final String name;
    private final SimulatedDisk template;
    private final Supplier<? extends Run> runs;
    private long seed = 1;
    private int seeds = 1;
    private int outcomes = 3;
    private int mostCrashes = Integer.MAX_VALUE;
    private int crashesInRecovery;
    private List<Fault> faults = List.of();
    private Consumer<SimulatedDisk> preparation = disk -> {};
    private int crashes;
    private int recoveriesCrashed;

    private CrashSearch(String name, SimulatedDisk template, Supplier<? extends Run> runs) {
        this.name = name;
        this.template = template;
        this.runs = runs;
    }

    /**
     * @param name tells this search from others in {@link #PROPERTY}; without semicolons
     * @param template what each run's disk holds at first; it is not changed
     */
    public static CrashSearch of(
            String name, SimulatedDisk template, Supplier<? extends Run> runs) {
        return new CrashSearch(name, template, runs);
    }

    /** The first seed of the disks. */
    public CrashSearch seed(long seed) {
        this.seed = seed;
        return this;
    }

    /**
     * How many seeds to go through, each with all crashes; more than one needs chance to differ.
     */
    public CrashSearch seeds(int seeds) {
        this.seeds = seeds;
        return this;
    }

    /**
     * Random outcomes to look at for each crash, besides "nothing is there" and "everything is".
     */
    public CrashSearch outcomes(int outcomes) {
        this.outcomes = outcomes;
        return this;
    }

    /** At most so many crashes for a seed, spread evenly over the changes. */
    public CrashSearch mostCrashes(int mostCrashes) {
        this.mostCrashes = mostCrashes;
        return this;
    }

    /** At most so many crashes of each recovery, spread evenly over its changes. */
    public CrashSearch crashesInRecovery(int crashes) {
        this.crashesInRecovery = crashes;
        return this;
    }

    /** Faults of every run, besides the crash. */
    public CrashSearch faults(Fault... faults) {
        this.faults = List.of(faults);
        return this;
    }

    /** Prepares each disk: probabilities of faults, room, order of names. */
    public CrashSearch prepare(Consumer<SimulatedDisk> preparation) {
        this.preparation = preparation;
        return this;
    }

    /**
     * Searches.
     *
     * @return runs that were made
     * @throws AssertionError for the plainest failing run found; its cause is what that run threw
     */
    public int run() {
        String line = System.getProperty(PROPERTY, "");
        if (line.startsWith(name + ";")) {
            CrashTrial trial = CrashTrial.parse(line);
            Result result = execute(trial, false);
            if (result.failure != null) {
                throw failure(trial, result);
            }
            return 1;
        }
        int count = 0;
        for (long each = seed; each < seed + seeds; each++) {
            count += run(each);
        }
        return count;
    }

    /** How many crashes {@link #run} looked at so far, each place with each outcome. */
    public int crashes() {
        return crashes;
    }

    /** And how many of recoveries. */
    public int recoveriesCrashed() {
        return recoveriesCrashed;
    }

    private int run(long each) {
        Result whole = check(new CrashTrial(name, each, faults, SimulatedDisk.LOSE_ALL, List.of()));
        long[] points = points(whole.changes, mostCrashes);
        if (points.length > 0 && runs.get().ifCrashedNow() != null) {
            return 1 + runOnce(each, points, whole.changesOfRecovery);
        }
        int count = 1;
        for (long point : points) {
            for (int outcome = 0; outcome < outcomes + 2; outcome++) {
                CrashTrial trial = trial(each, point, outcome);
                Result result = check(trial);
                count++;
                crashes++;
                for (long again : points(result.changesOfRecovery, crashesInRecovery)) {
                    check(
                            new CrashTrial(
                                    name,
                                    each,
                                    trial.faults(),
                                    trial.outcome(),
                                    List.of(Fault.crashAtChange(again))));
                    count++;
                    recoveriesCrashed++;
                }
            }
        }
        return count;
    }

    private CrashTrial trial(long each, long point, int outcome) {
        List<Fault> withCrash = new ArrayList<>(faults);
        withCrash.add(Fault.crashAtChange(point));
        return new CrashTrial(name, each, withCrash, outcome(point, outcome), List.of());
    }

    /** What a crash would leave, and what is known then. */
    private record Found(CrashTrial trial, SimulatedDisk disk, Run run) {}

    /**
     * The same crashes with the workload run but once: at each of them the disk is kept as a crash
     * would leave it.
     *
     * @return runs
     */
    private int runOnce(long each, long[] points, long changesOfRecovery) {
        List<Found> all = new ArrayList<>();
        Run run = runs.get();
        SimulatedDisk disk = template.copy(each);
        preparation.accept(disk);
        disk.plan(faults);
        disk.watch(
                change -> {
                    if (Arrays.binarySearch(points, change) >= 0) {
                        for (int outcome = 0; outcome < outcomes + 2; outcome++) {
                            CrashTrial trial = trial(each, change, outcome);
                            all.add(
                                    new Found(
                                            trial,
                                            disk.found(trial.outcome()),
                                            run.ifCrashedNow()));
                        }
                    }
                });
        run.workload(disk);
        disk.watch(null);
        long changes = changesOfRecovery;
        int count = 0;
        for (Found found : all) {
            changes = verify(found, changes);
            crashes++;
            count++;
        }
        return count;
    }

    /**
     * @param changes of the recovery before: about where this one may be crashed
     * @return changes of this one
     */
    private long verify(Found found, long changes) {
        CrashTrial trial = found.trial;
        Map<Long, SimulatedDisk> again = new TreeMap<>();
        Set<Long> points = new HashSet<>();
        for (int i = 0; i < Math.min(crashesInRecovery, changes); i++) {
            long random = Chance.mix(Chance.mix(trial.seed(), trial.outcome()), crashes * 31L + i);
            points.add(1 + Long.remainderUnsigned(random, changes));
        }
        found.disk.watch(
                change -> {
                    if (points.contains(change)) {
                        again.put(change, found.disk.found(trial.outcome()));
                    }
                });
        verify(trial, found.run, found.disk);
        again.forEach(
                (change, disk) -> {
                    CrashTrial crashed =
                            new CrashTrial(
                                    name,
                                    trial.seed(),
                                    trial.faults(),
                                    trial.outcome(),
                                    List.of(Fault.crashAtChange(change)));
                    verify(crashed, found.run, disk);
                    recoveriesCrashed++;
                });
        return found.run.changesOfRecovery(found.disk);
    }

    private void verify(CrashTrial trial, Run run, SimulatedDisk found) {
        try {
            run.verify(found);
        } catch (RuntimeException | AssertionError e) {
            // The same again with a crash of the disk, which is what the line repeats.
            check(trial);
            throw failure(trial, new Result(e, 0, 0, List.of(), found.lastCalls(TRACE)));
        }
    }

    /** The plain outcomes as they are, others different for each crash. */
    private static long outcome(long point, int number) {
        return number < 2 ? number : point * 1_000 + number;
    }

    /** From 1 to {@code last}, evenly spread, the last one among them. */
    private static long[] points(long last, int most) {
        int count = (int) Math.min(last, most);
        long[] points = new long[count];
        for (int i = 0; i < count; i++) {
            points[i] = last * (i + 1) / count;
        }
        return points;
    }

    private Result check(CrashTrial trial) {
        Result result = execute(trial, true);
        if (result.failure == null) {
            return result;
        }
        // What chance did is planned now, so that it can be taken away piece by piece.
        List<Fault> all = new ArrayList<>(trial.faults());
        all.addAll(result.byChance);
        CrashTrial planned =
                new CrashTrial(name, trial.seed(), all, trial.outcome(), trial.again());
        Result again = execute(planned, false);
        throw again.failure == null ? failure(trial, result) : shrink(planned, again);
    }

    private AssertionError shrink(CrashTrial first, Result firstResult) {
        CrashTrial failing = first;
        Result result = firstResult;
        int left = MOST_SHRINK_RUNS;
        for (boolean reduced = true; reduced; ) {
            reduced = false;
            for (CrashTrial plainer : failing.plainer()) {
                if (left-- == 0) {
                    break;
                }
                Result attempt = execute(plainer, false);
                if (attempt.failure != null) {
                    failing = plainer;
                    result = attempt;
                    reduced = true;
                    break;
                }
            }
        }
        return failure(failing, result);
    }

    private static AssertionError failure(CrashTrial trial, Result result) {
        return new AssertionError(
                result.failure
                        + "\nafter a crash in this run, repeat it with -D"
                        + PROPERTY
                        + "='"
                        + trial
                        + "'\nits last calls:\n"
                        + result.lastCalls,
                result.failure);
    }

    /**
     * What became of a run.
     *
     * @param failure null if it was right
     */
    private record Result(
            Throwable failure,
            long changes,
            long changesOfRecovery,
            List<Fault> byChance,
            String lastCalls) {}

    private Result execute(CrashTrial trial, boolean withChance) {
        Run run = runs.get();
        SimulatedDisk disk = template.copy(trial.seed());
        preparation.accept(disk);
        if (!withChance) {
            disk.clearChances();
        }
        disk.plan(trial.faults());
        SimulatedDisk found = null;
        Throwable failure = null;
        try {
            try {
                run.workload(disk);
            } catch (SimulatedCrash e) {
                // As planned.
            }
            found = disk.restart(trial.outcome()).plan(trial.again());
            try {
                run.verify(found);
            } catch (SimulatedCrash e) {
                found = found.restart(trial.outcome());
                run.verify(found);
            }
        } catch (RuntimeException | AssertionError e) {
            failure = e;
        }
        return new Result(
                failure,
                disk.count(DiskCall.CHANGE),
                failure != null ? 0 : run.changesOfRecovery(found),
                disk.faultsByChance(),
                failure == null ? null : disk.lastCalls(TRACE));
    }
}
