package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.function.Predicate;
import org.openjdk.jmh.util.ListStatistics;

/** The tables of docs/wal-insert.md, from the samples of {@link WalInsertReport}. */
final class WalInsertTables {
    /** Processors that share a cache answer sooner. */
    private static final long NEAR_NANOS = 350;

    /** Of the plain speed. */
    private static final double PLAIN_ASKED = 0.8;

    /** The first column of the line that tells where the samples were taken. */
    static final String MACHINE = "machine";

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
              dear that is depends on where the hypervisor has put the two processors. In trials aside, of earlier code and on faster processors, each round with the time of a word sent there and back: near each other (50 to 240 ns)
              two threads made 20 to 24 million records a second, far (345 ns and more) 8 to 10, and one process went from the one to the other and back. Without a WAL writer
              and near, two threads made 29 and one 19.5. Tried: a slot's bound that does not read the shared word (7 % more when near, 3 % when apart), an exchange before the
              compare-and-set, and waiting after a failed one (nothing). None was worth its complication.
            - **The mark on the disk is met for records of 8 KiB and missed for 100 bytes, where the processors bound it.** With small records two threads that sum, lay out
              and copy them bring 0.47 of the plain speed when no write or sync takes any time, and as much on the disk (the ratio's interval includes 1): the disk
              costs nothing that shows, so neither other pieces nor another thread that writes while one syncs can meet the mark. It takes fewer instructions a record, and
              the ceiling is this code's and this machine's: another processor or disk moves it. Whether the two processors are near or far made no difference here. With 8 KiB
              the ceiling is four times the plain speed: there the disk bounds.
            - **Machines differ more than code.** An earlier run, of code with three more divisions a record, met processors twice as fast and a disk that took 3.4 to 4.3 GB/s: 17.6 million
              records a second from two threads, and 0.50 (100 bytes) and 0.78 (8 KiB) of the plain speed. What their absence brings was not measured on its own. Plain
              writes past the page cache (O_DIRECT), in a trial aside, took 1,173 to 1,393 MB/s with less than half the processor time.
            - **A committer leads, no thread of its own flushes.** The flusher shares more at eight threads (probably as it looks again only when the woken have inserted); for
              one committer, who has to wake it and be woken, it is slower by a fifth. The leader needs no thread and meets the mark, so it stays.
            - **The Disruptor** needs one consumer that does all work which depends on a record's place. It keeps up with commits, where the disk decides, and inserts less than
              half as much; and its producers do not know their record's LSN.
            """;

    private final List<Sample> samples;

    WalInsertTables(Path csv) throws IOException {
        samples = Files.readAllLines(csv).stream().skip(1).map(Sample::parse).toList();
    }

    String text() {
        Sample machine =
                samples.stream().filter(s -> s.what.equals(MACHINE)).findFirst().orElseThrow();
        StringBuilder text = new StringBuilder();
        text.append(
                """
                # WAL insertion, measured

                Records of 100 bytes in PostgreSQL 15's complete format (CRC, back link, page headers), segments and ring of 16 MiB; old segments
                are recycled on the way. Each figure is the mean of ten rounds with its 95 %% interval; the variants take turns
                within one process. %.0f processors, %s. [All samples](wal-insert.csv).

                Made by `java --add-exports java.base/jdk.internal.misc=ALL-UNNAMED -cp benchmarks/target/benchmarks.jar org.pgkernel.benchmarks.WalInsertReport run docs/wal-insert.csv DISK`,
                DISK a directory on a real disk, then `report docs/wal-insert.csv docs/wal-insert.md`; three minutes.

                - `reservation` the kernel's: one CAS reserves, threads copy in parallel, who commits leads the flush for all.
                - `flusher` the same, but one thread flushes, woken by committers (benchmarks only).
                - `disruptor` records go through an LMAX Disruptor to one consumer that sums, places and writes them (benchmarks only).
                """
                        .formatted(machine.value, machine.variant));
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
                there already. *Ceiling*: the same insertion in the same round, but each write and sync returns at once, so only the processors bound it.
                Ratios by pairs. Asked for: at least 0.8 of the plain speed.

                | records | rounds | insertion, MB/s | plain, MB/s | ceiling, MB/s | insertion / plain | ceiling / plain | insertion / ceiling | writes | syncs | |
                |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|
                """);
        for (String record : List.of("100 bytes", "8 KiB")) {
            text.append(diskLine(record, "", s -> true));
            text.append(diskLine(record, ", near", s -> s.ping < NEAR_NANOS));
            text.append(diskLine(record, ", far", s -> s.ping >= NEAR_NANOS));
        }
    }

    private String diskLine(String record, String which, Predicate<Sample> wanted) {
        String ours = "insertion of " + record;
        String free = "ceiling for " + record;
        String plain = "plain beside " + record;
        List<Sample> ratio = only(wanted, of("disk", ours, 2, "of plain"));
        List<Sample> bound = only(wanted, of("disk", free, 2, "of plain"));
        return line(
                "| %s | %d | %s | %s | %s | %s | %s | %s | %s | %s | %s |",
                record + which,
                ratio.size(),
                score(only(wanted, of("disk", ours, 2, "MB/s")), 1, 0),
                score(only(wanted, of("disk", plain, 1, "MB/s")), 1, 0),
                score(only(wanted, of("disk", free, 2, "MB/s")), 1, 0),
                score(ratio, 1, 3),
                score(bound, 1, 3),
                score(only(wanted, of("disk", ours, 2, "of ceiling")), 1, 3),
                count(only(wanted, of("disk", ours, 2, "writes"))),
                count(only(wanted, of("disk", ours, 2, "syncs"))),
                which.isEmpty() ? diskVerdict(mean(ratio), mean(bound)) : "");
    }

    private static String diskVerdict(double ratio, double ceiling) {
        String verdict = verdict(ratio >= PLAIN_ASKED);
        return ratio >= PLAIN_ASKED || ceiling >= PLAIN_ASKED
                ? verdict
                : verdict
                        + line("; out of reach: the processors' ceiling is %.3f", ceiling).strip();
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
        return only(s -> s.ping < NEAR_NANOS == near, all);
    }

    private static List<Sample> only(Predicate<Sample> wanted, List<Sample> all) {
        return all.stream().filter(wanted).toList();
    }

    private static String count(List<Sample> all) {
        return all.isEmpty() ? "-" : String.format(Locale.ROOT, "%.0f", mean(all));
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
