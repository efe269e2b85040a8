package org.pgkernel.testkit;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Which calls of one disk fail: planned faults, then chance. Remembers what chance did as planned
 * faults, so that the run can be repeated and reduced. Guarded by the disk's lock.
 */
final class FaultPlan {
    private static final int CALLS = DiskCall.values().length;

    private final long seed;
    private final List<Fault> planned = new ArrayList<>();

    /** Calls that each planned fault has counted. */
    private long[] seen = new long[4];

    private final List<Fault> byChance = new ArrayList<>();
    private final double[] probability = new double[CALLS];
    private final Fault.Effect[][] effects = new Fault.Effect[CALLS][];

    FaultPlan(long seed) {
        this.seed = seed;
    }

    void add(Fault fault) {
        if (planned.size() == seen.length) {
            seen = Arrays.copyOf(seen, seen.length * 2);
        }
        seen[planned.size()] = 0;
        planned.add(fault);
    }

    void clear() {
        planned.clear();
        clearChances();
    }

    void clearChances() {
        Arrays.fill(probability, 0);
    }

    void chance(DiskCall call, double probability, Fault.Effect... effects) {
        for (Fault.Effect effect : effects) {
            new Fault(effect, call, 1, "");
        }
        for (DiskCall each : DiskCall.values()) {
            if (call.covers(each)) {
                this.probability[each.ordinal()] = probability;
                this.effects[each.ordinal()] = effects.clone();
            }
        }
    }

    List<Fault> byChance() {
        return List.copyOf(byChance);
    }

    /**
     * What happens at this call; null for nothing. Of two planned faults for one call the first one
     * happens.
     *
     * @param number of the call among all, from 1
     * @param ofKind of the call among those of its kind, from 1
     */
    Fault.Effect next(DiskCall call, String path, long number, long ofKind) {
        Fault.Effect effect = null;
        for (int i = 0; i < planned.size(); i++) {
            Fault fault = planned.get(i);
            if (fault.call().covers(call) && path.contains(fault.part())) {
                seen[i]++;
                if (effect == null && (fault.nth() == 0 || fault.nth() == seen[i])) {
                    effect = fault.effect();
                }
            }
        }
        double chance = probability[call.ordinal()];
        if (effect != null || chance == 0) {
            return effect;
        }
        long random = Chance.mix(seed, number);
        if ((random >>> 11) * 0x1p-53 >= chance) {
            return null;
        }
        Fault.Effect[] choice = effects[call.ordinal()];
        effect = choice[(int) Long.remainderUnsigned(Chance.mix(random, 1), choice.length)];
        byChance.add(Fault.at(effect, call, ofKind));
        return effect;
    }
}
