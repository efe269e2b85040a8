package org.pgkernel.testkit;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * All that decides one run of a {@link CrashSearch}: with the workload it is the run.
 *
 * @param name of the search
 * @param seed of the disk
 * @param faults of the workload, the crash among them
 * @param outcome of the crash
 * @param again faults of the recovery, which is run once more after them; empty for none
 */
public record CrashTrial(
        String name, long seed, List<Fault> faults, long outcome, List<Fault> again) {
    /** {@code name;seed=1;faults=CRASH@CHANGE#12,EIO@SYNC#2;outcome=7;again=CRASH@CHANGE#3}. */
    @Override
    public String toString() {
        return name
                + ";seed="
                + seed
                + ";faults="
                + text(faults)
                + ";outcome="
                + outcome
                + ";again="
                + text(again);
    }

    static CrashTrial parse(String text) {
        String[] parts = text.split(";", -1);
        if (parts.length != 5) {
            throw new IllegalArgumentException(
                    "not a run (NAME;seed=;faults=;outcome=;again=): " + text);
        }
        return new CrashTrial(
                parts[0],
                Long.parseLong(value(parts[1], "seed")),
                faults(value(parts[2], "faults")),
                Long.parseLong(value(parts[3], "outcome")),
                faults(value(parts[4], "again")));
    }

    /** Plainer runs that may fail the same way, the plainest first. */
    List<CrashTrial> plainer() {
        List<CrashTrial> plainer = new ArrayList<>();
        if (!again.isEmpty()) {
            plainer.add(new CrashTrial(name, seed, faults, outcome, List.of()));
        }
        for (int i = 0; i < faults.size(); i++) {
            List<Fault> fewer = new ArrayList<>(faults);
            fewer.remove(i);
            plainer.add(new CrashTrial(name, seed, fewer, outcome, again));
        }
        for (long plain : new long[] {SimulatedDisk.LOSE_ALL, SimulatedDisk.KEEP_ALL}) {
            if (outcome != SimulatedDisk.LOSE_ALL && outcome != plain) {
                plainer.add(new CrashTrial(name, seed, faults, plain, again));
            }
        }
        for (int i = 0; i < faults.size(); i++) {
            for (long nth : earlier(faults.get(i).nth())) {
                List<Fault> moved = new ArrayList<>(faults);
                Fault fault = faults.get(i);
                moved.set(i, new Fault(fault.effect(), fault.call(), nth, fault.part()));
                plainer.add(new CrashTrial(name, seed, moved, outcome, again));
            }
        }
        return plainer;
    }

    /** Smaller numbers to try: in big steps from 1 on, then just before. */
    private static long[] earlier(long nth) {
        if (nth <= 1) {
            return new long[0];
        }
        if (nth <= 32) {
            long[] all = new long[(int) nth - 1];
            Arrays.setAll(all, i -> i + 1);
            return all;
        }
        return new long[] {
            1, nth / 8, nth / 4, nth / 2, nth * 3 / 4, nth * 7 / 8, nth - 2, nth - 1
        };
    }

    private static String text(List<Fault> faults) {
        return faults.stream().map(Fault::toString).collect(Collectors.joining(","));
    }

    private static List<Fault> faults(String text) {
        return text.isEmpty()
                ? List.of()
                : Arrays.stream(text.split(",")).map(Fault::parse).toList();
    }

    private static String value(String part, String key) {
        if (!part.startsWith(key + "=")) {
            throw new IllegalArgumentException("expected " + key + "= in a run, found: " + part);
        }
        return part.substring(key.length() + 1);
    }
}
