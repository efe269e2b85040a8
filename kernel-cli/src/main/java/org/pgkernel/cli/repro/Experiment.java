package org.pgkernel.cli.repro;

import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.cli.Progress;
import org.pgkernel.cli.Sentences;
import org.pgkernel.cli.SharedBuffers;
import org.pgkernel.cli.UserException;
import org.pgkernel.testkit.FileTrees;
import org.pgkernel.testkit.PostgresBinaries;

/**
 * Makes the data sets one after the other and runs all cells of each before the next, so that only
 * one is on disk.
 */
final class Experiment {
    /** What came out. */
    record Outcome(
            List<Measurement> measurements, List<RivalMeasurement> rivals, String judgeVersion) {
        long pagesDifferent() {
            return measurements.stream().mapToLong(Measurement::pagesDifferent).sum();
        }
    }

    private final Settings settings;
    private final PrintStream err;
    private final List<Measurement> measurements = new ArrayList<>();
    private final List<RivalMeasurement> rivals = new ArrayList<>();

    Experiment(Settings settings, PrintStream err) {
        this.settings = settings;
        this.err = err;
    }

    Outcome run() {
        PostgresBinaries judge = PostgresBinaries.judge();
        // What can be refused is refused before anything is made.
        for (int major : settings.postgres()) {
            rival(major);
        }
        refuseCsv();
        try (Workspace work =
                        Workspace.open(
                                settings.keep(), Workspace.usualPlaces(), settings.bytesNeeded());
                PrintWriter csv = openCsv()) {
            err.println("data in " + work.path() + " (" + fileSystem(work.path()) + ")");
            for (Settings.DataKind kind : settings.dataKinds()) {
                run(kind, judge, work.path(), csv);
            }
        } catch (IOException e) {
            throw new UserException("cannot use a file or directory: " + Sentences.of(e), e);
        }
        return new Outcome(measurements, rivals, judge.version());
    }

    private void run(Settings.DataKind kind, PostgresBinaries judge, Path work, PrintWriter csv)
            throws IOException {
        Path home =
                Files.createDirectory(
                        work.resolve(
                                kind.operation().name().toLowerCase(Locale.ROOT)
                                        + (kind.toast() ? "-toast" : "-plain")));
        openToServerUser(home);
        Dataset dataset = make(judge, kind, home);
        try (Progress progress =
                new Progress(err, kind + ": PostgreSQL recovers it, the judge", 1)) {
            Path directory = new Primary(judge, home, settings.tables()).judge(dataset);
            dataset =
                    new Dataset(
                            dataset.operation(),
                            dataset.toast(),
                            dataset.base(),
                            dataset.tables(),
                            dataset.baseCopy(),
                            dataset.wal(),
                            dataset.pauseLsn(),
                            directory);
            progress.at(1);
        }
        runOurs(kind, dataset, home, csv);
        for (int major : settings.postgres()) {
            runRival(kind, major, dataset, home);
        }
        if (settings.keep() == null) {
            FileTrees.delete(home);
        }
    }

    private Dataset make(PostgresBinaries binaries, Settings.DataKind kind, Path home) {
        try (Progress progress =
                new Progress(
                        err,
                        kind + ": PostgreSQL " + binaries.version() + " writes the data",
                        Primary.steps(kind.operation(), settings.tables()))) {
            return new Primary(binaries, home, settings.tables())
                    .make(kind.operation(), kind.toast(), settings.base(), progress::at);
        }
    }

    private void runOurs(Settings.DataKind kind, Dataset dataset, Path home, PrintWriter csv) {
        try (Progress progress = new Progress(err, kind + ": runs", settings.runsADataset() + 1)) {
            // The first run in a JVM pays for compiling; its figures would be the compiler's.
            measure(
                    dataset,
                    home,
                    new Cell(
                            kind.operation(),
                            kind.toast(),
                            SharedBuffers.parse("128MB"),
                            DropStrategy.LOOKUP),
                    0);
            int done = 1;
            progress.at(done);
            for (int repetition = 1; repetition <= settings.repetitions(); repetition++) {
                for (SharedBuffers size : settings.sharedBuffers()) {
                    for (DropStrategy strategy : settings.strategies()) {
                        Measurement measurement =
                                measure(
                                        dataset,
                                        home,
                                        new Cell(kind.operation(), kind.toast(), size, strategy),
                                        repetition);
                        measurements.add(measurement);
                        csv.println(measurement.csv(settings.base(), settings.tables()));
                        if (csv.checkError()) {
                            throw new UserException(
                                    "cannot write the figures: file=" + settings.csv());
                        }
                        progress.at(++done);
                    }
                }
            }
        }
    }

    private Measurement measure(Dataset dataset, Path home, Cell cell, int repetition) {
        Path directory =
                home.resolve(
                        "standby-"
                                + cell.sharedBuffers()
                                + "-"
                                + cell.strategy()
                                + "-"
                                + repetition);
        Measurement measurement = new FailoverRun(dataset, directory).run(cell, repetition);
        if (settings.keep() == null) {
            FileTrees.delete(directory);
        }
        return measurement;
    }

    /** A rival of another release needs data of its own; 15 takes what the judge's release made. */
    private void runRival(Settings.DataKind kind, int major, Dataset ours, Path home)
            throws IOException {
        PostgresBinaries binaries = rival(major);
        Dataset dataset = ours;
        Path directory = home;
        if (major != 15) {
            directory = Files.createDirectory(home.resolve("postgres-" + major));
            openToServerUser(directory);
            dataset = make(binaries, kind, directory);
        }
        int runs = settings.sharedBuffers().size() * settings.repetitions();
        try (Progress progress =
                new Progress(err, kind + ": PostgreSQL " + binaries.version() + ", runs", runs)) {
            int done = 0;
            for (int repetition = 1; repetition <= settings.repetitions(); repetition++) {
                for (SharedBuffers size : settings.sharedBuffers()) {
                    Path data = directory.resolve("rival-" + size + "-" + repetition);
                    rivals.add(new RivalRun(binaries, dataset, data).run(size, repetition));
                    if (settings.keep() == null) {
                        FileTrees.delete(data);
                    }
                    progress.at(++done);
                }
            }
        }
        if (major != 15 && settings.keep() == null) {
            FileTrees.delete(directory);
        }
    }

    private static PostgresBinaries rival(int major) {
        if (major == PostgresBinaries.judge().major()) {
            return PostgresBinaries.judge();
        }
        return PostgresBinaries.ofMajor(major)
                .orElseThrow(
                        () ->
                                new UserException(
                                        "no binaries of PostgreSQL " + major + " were built in"));
    }

    private void refuseCsv() {
        Path csv = settings.csv();
        if (csv == null) {
            return;
        }
        Path parent = csv.toAbsolutePath().getParent();
        if (Files.isDirectory(csv)
                || !Files.isDirectory(parent)
                || !Files.isWritable(Files.exists(csv) ? csv : parent)) {
            throw new UserException("the figures cannot be written there: file=" + csv);
        }
    }

    private PrintWriter openCsv() throws IOException {
        if (settings.csv() == null) {
            return new PrintWriter(PrintWriter.nullWriter());
        }
        PrintWriter csv =
                new PrintWriter(Files.newBufferedWriter(settings.csv(), StandardCharsets.UTF_8));
        csv.println(Measurement.CSV_HEADER);
        return csv;
    }

    private static String fileSystem(Path path) throws IOException {
        FileStore store = Files.getFileStore(path);
        return store.type();
    }

    private static void openToServerUser(Path directory) throws IOException {
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
    }
}
