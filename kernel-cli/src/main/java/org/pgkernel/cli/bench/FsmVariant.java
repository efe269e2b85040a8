package org.pgkernel.cli.bench;

import java.util.Arrays;
import java.util.List;
import java.util.function.UnaryOperator;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.fsm.FsmOptions;
import org.pgkernel.fsm.FsmPolicy;

/** A policy for free space, as {@code bench fsm} opens clusters with it; the first is the base. */
record FsmVariant(String name, UnaryOperator<ClusterOptions> options) {
    static List<FsmVariant> all() {
        return Arrays.stream(FsmPolicy.values()).map(FsmVariant::of).toList();
    }

    private static FsmVariant of(FsmPolicy policy) {
        return new FsmVariant(policy.name(), options -> options.withFsm(FsmOptions.of(policy)));
    }
}
