package org.pgkernel.cli.bench;

import java.util.Arrays;
import java.util.SplittableRandom;
import org.pgkernel.base.RelFileLocator;

/** Traces that are made, not recorded. The same seed makes the same trace. */
enum GeneratedTrace {
    /** Page k of the order of popularity is used 1/k^0.8 as often as the first. */
    ZIPF_0_8("zipf-0.8") {
        @Override
        Trace make(String name, int pages, int uses, SplittableRandom random) {
            Zipf zipf = new Zipf(pages, 0.8, random);
            return new Trace(name, relation(pages), fill(uses, i -> zipf.next()));
        }
    },
    /** The same, 1/k as often. */
    ZIPF_1_0("zipf-1.0") {
        @Override
        Trace make(String name, int pages, int uses, SplittableRandom random) {
            Zipf zipf = new Zipf(pages, 1.0, random);
            return new Trace(name, relation(pages), fill(uses, i -> zipf.next()));
        }
    },
    /** The same, whose order of popularity is another one after each tenth. */
    SHIFT("shift") {
        @Override
        Trace make(String name, int pages, int uses, SplittableRandom random) {
            Zipf[] zipf = {null};
            int part = Math.max(1, uses / 10);
            return new Trace(
                    name,
                    relation(pages),
                    fill(
                            uses,
                            i -> {
                                if (i % part == 0) {
                                    zipf[0] = new Zipf(pages, 1.0, random);
                                }
                                return zipf[0].next();
                            }));
        }
    },
    /** zipf-1.0 over one half of the pages; every 4th use is a scan of the other half. */
    SCAN("scan") {
        @Override
        Trace make(String name, int pages, int uses, SplittableRandom random) {
            return scan(name, pages, uses, random, false);
        }
    },
    /** The same uses, the scans through rings when PostgreSQL would use one. */
    SCAN_RING("scan-ring") {
        @Override
        Trace make(String name, int pages, int uses, SplittableRandom random) {
            return scan(name, pages, uses, random, true);
        }
    },
    /** All pages in order, again and again. */
    LOOP("loop") {
        @Override
        Trace make(String name, int pages, int uses, SplittableRandom random) {
            return new Trace(name, relation(pages), fill(uses, i -> i % pages));
        }
    },
    /**
     * Like pgbench: root, inner page and leaf of an index, the heap page; teller, branch, history.
     */
    TPCB("tpcb") {
        @Override
        Trace make(String name, int pages, int uses, SplittableRandom random) {
            return new Tpcb(pages, random).make(name, uses);
        }
    };

    private static final int FIRST_RELATION = 16384;

    private final String label;

    GeneratedTrace(String label) {
        this.label = label;
    }

    /** As it is written on the command line. */
    String label() {
        return label;
    }

    /**
     * @throws IllegalArgumentException in one sentence, when there is none of this name
     */
    static GeneratedTrace parse(String label) {
        for (GeneratedTrace trace : values()) {
            if (trace.label.equals(label)) {
                return trace;
            }
        }
        throw new IllegalArgumentException(
                "there is no trace \"" + label + "\"; there are " + labels());
    }

    static String labels() {
        return String.join(
                ", ", Arrays.stream(values()).map(GeneratedTrace::label).toArray(String[]::new));
    }

    /**
     * @param pages how many pages there are; rarely used ones may not occur
     * @param uses the trace's length
     */
    final Trace make(int pages, int uses, long seed) {
        // Both scan traces have the same uses, so that what the ring changes can be seen.
        int own = (this == SCAN_RING ? SCAN : this).ordinal();
        return make(label, pages, uses, new SplittableRandom(seed + own * 0x9E3779B97F4A7C15L));
    }

    abstract Trace make(String name, int pages, int uses, SplittableRandom random);

    private static Trace scan(
            String name, int pages, int uses, SplittableRandom random, boolean ring) {
        int hot = pages / 2;
        int cold = pages - hot;
        Zipf zipf = new Zipf(hot, 1.0, random);
        byte[] scans = new byte[uses];
        int[] all = new int[uses];
        for (int i = 0; i < uses; i++) {
            if (i % 4 != 3) {
                all[i] = zipf.next();
                continue;
            }
            int block = i / 4 % cold;
            all[i] = hot + block;
            scans[i] = block == 0 ? Trace.SCAN_BEGINS : Trace.SCAN;
        }
        return new Trace(name, relations(hot, cold), all, ring ? scans : null, cold);
    }

    private static Trace.Page[] relation(int pages) {
        return relations(pages);
    }

    /** The pages of relations of these sizes, one relation after the other. */
    private static Trace.Page[] relations(int... sizes) {
        Trace.Page[] pages = new Trace.Page[Arrays.stream(sizes).sum()];
        int at = 0;
        for (int i = 0; i < sizes.length; i++) {
            for (int block = 0; block < sizes[i]; block++) {
                pages[at++] =
                        new Trace.Page(
                                RelFileLocator.DEFAULT_TABLESPACE, 5, FIRST_RELATION + i, 0, block);
            }
        }
        return pages;
    }

    private interface Uses {
        int page(int at);
    }

    private static int[] fill(int uses, Uses next) {
        int[] pages = new int[uses];
        for (int i = 0; i < uses; i++) {
            pages[i] = next.page(i);
        }
        return pages;
    }

    /** Popularity by rank, ranks dealt out to the pages at random. */
    private static final class Zipf {
        private final double[] cumulated;
        private final int[] pageOfRank;
        private final SplittableRandom random;

        Zipf(int pages, double exponent, SplittableRandom random) {
            this.random = random;
            cumulated = new double[pages];
            pageOfRank = new int[pages];
            double sum = 0;
            for (int i = 0; i < pages; i++) {
                sum += Math.pow(i + 1, -exponent);
                cumulated[i] = sum;
                int other = random.nextInt(i + 1);
                pageOfRank[i] = pageOfRank[other];
                pageOfRank[other] = i;
            }
        }

        int next() {
            double wanted = random.nextDouble() * cumulated[cumulated.length - 1];
            int found = Arrays.binarySearch(cumulated, wanted);
            int rank = found < 0 ? ~found : found;
            return pageOfRank[Math.min(rank, cumulated.length - 1)];
        }
    }

    /**
     * Transactions of TPC-B as pgbench runs them: an account by its index, a teller, a branch, and
     * the end of the history, which grows.
     */
    private static final class Tpcb {
        private static final int FANOUT = 300;
        private static final int HISTORY_ROWS = 150;

        private final SplittableRandom random;
        private final int heap;
        private final int leaves;
        private final int inner;
        private final int tellers;
        private final int branches;
        private final int history;

        Tpcb(int pages, SplittableRandom random) {
            this.random = random;
            heap = Math.max(1, pages * 8 / 10);
            leaves = Math.max(1, pages / 8);
            inner = Math.max(1, leaves / FANOUT);
            tellers = Math.max(1, pages / 1000);
            branches = Math.max(1, pages / 4000);
            history = Math.max(1, pages - heap - leaves - inner - tellers - branches - 1);
        }

        Trace make(String name, int uses) {
            int[] all = new int[uses];
            int at = 0;
            for (int transaction = 0; at < uses; transaction++) {
                for (int page : transaction(transaction)) {
                    if (at < uses) {
                        all[at++] = page;
                    }
                }
            }
            return new Trace(
                    name, relations(1, inner, leaves, heap, tellers, branches, history), all);
        }

        private int[] transaction(int number) {
            double account = random.nextDouble();
            int firstLeaf = 1 + inner;
            int firstHeap = firstLeaf + leaves;
            int firstTeller = firstHeap + heap;
            int firstBranch = firstTeller + tellers;
            int firstHistory = firstBranch + branches;
            int teller = random.nextInt(tellers);
            return new int[] {
                0,
                1 + (int) (account * inner),
                firstLeaf + (int) (account * leaves),
                firstHeap + (int) (account * heap),
                firstTeller + teller,
                firstBranch + (int) ((long) teller * branches / tellers),
                firstHistory + number / HISTORY_ROWS % history
            };
        }
    }
}
