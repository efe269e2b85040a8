package org.pgkernel.cli.bench;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.pgkernel.cli.Progress;
import org.pgkernel.testkit.FileTrees;

/**
 * The published pgbench runs: a cluster a policy, all open at once, runs in turns, in the other
 * order every other round.
 */
final class FsmTpcb {
    private static final double PER = 1000;

    private final FsmSettings settings;
    private final List<FsmVariant> variants;
    private final FsmFigures figures;

    FsmTpcb(FsmSettings settings, List<FsmVariant> variants, FsmFigures figures) {
        this.settings = settings;
        this.variants = variants;
        this.figures = figures;
    }

    void run(Path directory) throws InterruptedException {
        for (int scale : settings.scales()) {
            run(directory.resolve("tpcb-" + scale), scale);
        }
    }

    private void run(Path directory, int scale) throws InterruptedException {
        List<TpcbCluster> clusters = new ArrayList<>();
        int steps = variants.size() * settings.sessions().size() * settings.rounds();
        try (Progress progress = new Progress(System.err, "tpcb, scale " + scale, steps)) {
            for (FsmVariant variant : variants) {
                Path data = directory.resolve(variant.name());
                FileTrees.delete(data);
                data.getParent().toFile().mkdirs();
                int buffers = scale * 2500 + 8192;
                clusters.add(new TpcbCluster(data, scale, buffers, false, variant.options()));
            }
            for (TpcbCluster cluster : clusters) {
                cluster.run(4, (long) (settings.seconds() * 2e9), 99);
            }
            int done = 0;
            for (int round = 0; round < settings.rounds(); round++) {
                for (int sessions : settings.sessions()) {
                    for (int i = 0; i < clusters.size(); i++) {
                        int which = round % 2 == 0 ? i : clusters.size() - 1 - i;
                        run(clusters.get(which), variants.get(which), scale, sessions, round);
                        progress.at(++done);
                    }
                }
            }
            for (TpcbCluster cluster : clusters) {
                cluster.check();
            }
        } finally {
            clusters.forEach(TpcbCluster::close);
            FileTrees.delete(directory);
        }
    }

    private void run(TpcbCluster cluster, FsmVariant variant, int scale, int sessions, int round)
            throws InterruptedException {
        cluster.checkpoint();
        TpcbCluster.Result result =
                cluster.run(sessions, (long) (settings.seconds() * 1e9), round * 1000L + sessions);
        String what =
                "scale " + scale + ", " + sessions + (sessions == 1 ? " session" : " sessions");
        add(what, "tps", variant, round, result.tps());
        double rows = result.rows() / PER;
        add(what, "pages tried per 1000 rows", variant, round, result.space().pagesTried() / rows);
        add(what, "pages added per 1000 rows", variant, round, result.space().pagesAdded() / rows);
        add(what, "map searches per 1000 rows", variant, round, result.space().searches() / rows);
    }

    private void add(String what, String measure, FsmVariant variant, int round, double value) {
        figures.add("tpcb", what, measure, variant.name(), round, value);
    }
}
