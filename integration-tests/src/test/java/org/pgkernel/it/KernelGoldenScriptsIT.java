package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.cluster.CreateOptions;
import org.pgkernel.cluster.RunOptions;
import org.pgkernel.it.sql.KernelTarget;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.testkit.golden.GoldenFiles;
import org.pgkernel.testkit.golden.GoldenOutcomes;
import org.pgkernel.testkit.golden.GoldenScript;

/**
 * The kernel does what the golden scripts expect, in every order of their steps: what PostgreSQL
 * does, see {@link GoldenScriptsIT}.
 */
class KernelGoldenScriptsIT {
    private static final GoldenFiles FILES = new GoldenFiles(Path.of("src/test/resources/golden"));
    private static final Path DATA = Path.of("/data");

    private Cluster cluster;
    private KernelTarget target;

    @BeforeEach
    void start() {
        SimulatedDisk disk = new SimulatedDisk(1);
        Cluster.create(DATA, CreateOptions.defaults().withDisk(disk).withWalSegmentSize(1 << 20));
        KernelTarget.Parking parking = new KernelTarget.Parking();
        cluster =
                Cluster.open(
                        DATA,
                        ClusterOptions.defaults()
                                .withDisk(disk)
                                .withSharedBuffers(1024)
                                .withRun(
                                        RunOptions.defaults()
                                                .withWorkers(RunOptions.Workers.BY_HAND)
                                                .withWalSize(64L << 20, 2L << 20)
                                                .withDeadlockTimeoutNanos(0)
                                                .withLockParking(parking)));
        target = new KernelTarget(cluster, parking);
    }

    @AfterEach
    void stop() {
        cluster.close();
    }

    static Stream<String> scripts() {
        return FILES.names().stream();
    }

    @ParameterizedTest
    @MethodSource("scripts")
    void theKernelDoesWhatIsExpected(String name) {
        GoldenScript script = FILES.read(name);
        assertEquals(FILES.expectedOfKernel(name), GoldenOutcomes.of(script, target).toString());
    }

    /** Where the kernel differs it is about who waits for how long, never about what is seen. */
    @ParameterizedTest
    @MethodSource("scripts")
    void whereNobodyWaitsTheKernelIsExpectedToDoWhatPostgresDoes(String name) {
        GoldenScript script = FILES.read(name);
        GoldenOutcomes postgres = GoldenOutcomes.parse(script.expected());
        GoldenOutcomes kernel = GoldenOutcomes.parse(FILES.expectedOfKernel(name));
        for (String level : script.levels()) {
            assertEquals(unwaited(postgres.of(level)), unwaited(kernel.of(level)), level);
        }
    }

    private static Map<String, String> unwaited(Map<String, String> outcomes) {
        Map<String, String> unwaited = new TreeMap<>(outcomes);
        unwaited.keySet().removeIf(interleaving -> interleaving.contains("~"));
        return unwaited;
    }
}
