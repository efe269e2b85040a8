package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.openjdk.jmh.util.ListStatistics;

/** The tables of docs/wal-insert.md, from the samples of {@link WalInsertReport}. */
final class WalInsertTables {
    /** Processors that share a cache answer sooner. */
    private static final long NEAR_NANOS = 350;

    private record Sample(
            String what, String variant, int threads, double value, String unit, long ping) {
        static Sample parse(String line) {
            String[] f = line.split(",");
            return new Sample(
                    f[0],
                    f[1],
                    Integer.parseInt(f[2]),
                    Double.parseDouble(f[4]),
                    f[5],
                    Long.parseLong(f[6]));
        }
    }

    private static final String READING =
            """

            ## What can be read from it

            - **Two threads need not insert more than one.** Each insertion changes one word that all change, and its record's first and last cache line. How
              dear that is depends on where the hypervisor has put the two processors. In trials aside, each round with the time of a word sent there and back: near each other (50 to 240 ns)
              two threads made 20 to 24 million records a second, far (345 ns and more) 8 to 10, and one process went from the one to the other and back. Without a WAL writer
              and near, two threads made 29 and one 19.5. Tried: a slot's bound that does not read the shared word (7 % more when near, 3 % when apart), an exchange before the
              compare-and-set, and waiting after a failed one (nothing). None was worth its complication.
            - **The mark on the disk is missed** on this machine, whose disk takes over 3 GB/s with syncs: two processors that sum, lay out and copy records
              of 100 bytes, and write them, too, bring half of that, and three quarters with records of 8 KiB. For 100 bytes it is insertion that takes the time, not the disk:
              in a trial aside of five rounds (the processors gave a third of the speed above, so compare only within it; not in the samples) two threads brought 517 to 652 MB/s
              when each write and sync returned at once, 532 to 633 on the disk, and plain writing in pieces of 4 MiB with a sync each 1,066 to 1,249. The disk
              costs nothing that shows; the inserters ran on a processor for 81 to 89 % of the time. So another thread that writes while one syncs would not have met the mark:
              that takes fewer instructions a record and fewer cache lines sent between two inserters. (Writes and syncs that return at once, in a later trial with no plain
              writing beside: 521 to 577 MB/s three times, 940 once; the bound depends on where the processors are.) Plain writes past the page cache (O_DIRECT)
              took 1,173 to 1,393 MB/s in the first trial, with less than half the processor time.
            - **A committer leads, no thread of its own flushes.** The flusher shares more at eight threads (probably as it looks again only when the woken have inserted); for
              one committer, who has to wake it and be woken, it is slower by a fifth. The leader needs no thread and meets the mark, so it stays.
            - **The Disruptor** needs one consumer that does all work which depends on a record's place. It keeps up with commits, where the disk decides, and inserts less than
              half as much from two threads; and its producers do not know their record's LSN.
            """;

    private final List<Sample> samples;

    WalInsertTables(Path csv) throws IOException {
        samples = Files.readAllLines(csv).stream().skip(1).map(Sample::parse).toList();
    }

    String text() {
        StringBuilder text = new StringBuilder();
        text.append(
                """
                # WAL insertion, measured

                Records of 100 bytes in PostgreSQL 15's complete format (CRC, back link, page headers), segments and ring of 16 MiB; old segments
                are recycled on the way. Each figure is the mean of ten rounds with its 95 %% interval; the variants take turns
                within one process. %d processors, JDK %s. [All samples](wal-insert.csv).

                Made by `java -cp benchmarks/target/benchmarks.jar org.pgkernel.benchmarks.WalInsertReport run docs/wal-insert.csv DISK`, DISK a directory on a
                real disk, then `report docs/wal-insert.csv docs/wal-insert.md`; two minutes.

                - `reservation` the kernel's: one CAS reserves, threads copy in parallel, who commits leads the flush for all.
                - `flusher` the same, but one thread flushes, woken by committers (benchmarks only).
                - `disruptor` records go through an LMAX Disruptor to one consumer that sums, places and writes them (benchmarks only).
                """
                        .formatted(
                                Runtime.getRuntime().availableProcessors(),
                                System.getProperty("java.runtime.version")));
        insertions(text);
        disk(text);
        commits(text);
        text.append(READING);
        return text.toString();
    }

    private void insertions(StringBuilder text) {
        text.append(
                """

                ## Into memory, nobody commits

                Millions of records a second, to segments in tmpfs. Asked for: at least 5 from two threads, nothing allocated. *Near*, *far*: rounds
                before which a word sent from one processor to the other and back took less than 350 ns, or more.

                | variant | threads | M/s | near | far | B/op | |
                |---|---:|---:|---:|---:|---:|---|
                """);
        for (int threads : new int[] {1, 2}) {
            for (String variant : List.of("reservation", "disruptor")) {
                List<Sample> all = of("insert", variant, threads, "records/s");
                double bytes = mean(of("insert", variant, threads, "B/op"));
                boolean asked = threads == 2 && variant.equals("reservation");
                text.append(
                        line(
                                "| `%s` | %d | %s | %s | %s | %.2f | %s |",
                                variant,
                                threads,
                                score(all, 1e6, 2),
                                score(near(all, true), 1e6, 2),
                                score(near(all, false), 1e6, 2),
                                bytes,
                                asked ? verdict(mean(all) >= 5e6 && bytes < 0.5) : ""));
            }
        }
    }

    private void disk(StringBuilder text) {
        text.append(
                """

                ## On a disk, nobody commits

                Two threads insert 384 MiB and flush; then the same writes and fdatasyncs are made again, plainly, by one thread, on other files that are
                there already. Asked for: at least 0.8 of the plain speed.

                | records | insertion, MB/s | plain, MB/s | insertion / plain, by pairs | writes | syncs | |
                |---|---:|---:|---:|---:|---:|---|
                """);
        for (String record : List.of("100 bytes", "8 KiB")) {
            String ours = "insertion of " + record;
            List<Sample> ratio = of("disk", ours, 2, "of plain");
            text.append(
                    line(
                            "| %s | %s | %s | %s | %.0f | %.0f | %s |",
                            record,
                            score(of("disk", ours, 2, "MB/s"), 1, 0),
                            score(of("disk", "plain beside " + record, 1, "MB/s"), 1, 0),
                            score(ratio, 1, 3),
                            mean(of("disk", ours, 2, "writes")),
                            mean(of("disk", ours, 2, "syncs")),
                            verdict(mean(ratio) >= 0.8)));
        }
    }

    private void commits(StringBuilder text) {
        text.append(
                """

                ## On a disk, every record a commit

                Each thread inserts a record and waits until it is durable. Asked for: at least 3 commits for a sync at eight threads.

                | variant | threads | commits/s | commits for a sync | |
                |---|---:|---:|---:|---|
                """);
        for (int threads : new int[] {1, 8}) {
            for (String variant : List.of("reservation", "flusher", "disruptor")) {
                List<Sample> shared = of("commit", variant, threads, "commits/sync");
                boolean asked = threads == 8 && variant.equals("reservation");
                text.append(
                        line(
                                "| `%s` | %d | %s | %s | %s |",
                                variant,
                                threads,
                                score(of("commit", variant, threads, "commits/s"), 1, 0),
                                score(shared, 1, 2),
                                asked ? verdict(mean(shared) >= 3) : ""));
            }
        }
    }

    private List<Sample> of(String what, String variant, int threads, String unit) {
        return samples.stream()
                .filter(s -> s.what.equals(what) && s.variant.equals(variant))
                .filter(s -> s.threads == threads && s.unit.equals(unit))
                .toList();
    }

    private static List<Sample> near(List<Sample> all, boolean near) {
        return all.stream().filter(s -> s.ping < NEAR_NANOS == near).toList();
    }

    private static double mean(List<Sample> all) {
        return all.stream().mapToDouble(Sample::value).average().orElse(Double.NaN);
    }

    private static String score(List<Sample> all, double unit, int digits) {
        if (all.isEmpty()) {
            return "-";
        }
        double[] values = all.stream().mapToDouble(s -> s.value / unit).toArray();
        String format = "%,." + digits + "f";
        ListStatistics statistics = new ListStatistics(values);
        String mean = String.format(Locale.ROOT, format, statistics.getMean());
        return values.length < 3
                ? mean
                : mean
                        + " ± "
                        + String.format(Locale.ROOT, format, statistics.getMeanErrorAt(0.95));
    }

    private static String verdict(boolean isMet) {
        return isMet ? "met" : "**not met**";
    }

    private static String line(String format, Object... values) {
        return String.format(Locale.ROOT, format, values) + "\n";
    }
}
