package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WorkDirectory;
import org.pgkernel.testkit.golden.GoldenFiles;
import org.pgkernel.testkit.golden.GoldenOutcomes;
import org.pgkernel.testkit.golden.GoldenScript;
import org.pgkernel.testkit.golden.PostgresTarget;
import org.pgkernel.testkit.golden.ScriptRunner;

/**
 * What the golden scripts expect is what a real PostgreSQL does: a sample of the interleavings of
 * each, run on it. {@code -Dpgkernel.golden=all} runs all, {@code =write} writes what comes out
 * into the scripts.
 */
class GoldenScriptsIT {
    private static final GoldenFiles FILES = new GoldenFiles(Path.of("src/test/resources/golden"));
    private static final int SAMPLE = 16;

    private static WorkDirectory work;
    private static PostgresServer server;
    private static PostgresTarget target;

    @BeforeAll
    static void start() throws Exception {
        work = WorkDirectory.create("pgkernel-it-golden");
        ClusterCopy.copy(Templates.of(PostgresBinaries.judge(), true, 16), work.resolve("data"));
        server =
                PostgresServer.builder(PostgresBinaries.judge(), work.resolve("data"))
                        .settings(PostgresServer.quietSettings())
                        .connectable()
                        .start();
        target = new PostgresTarget(server);
    }

    @AfterAll
    static void stop() throws Exception {
        try (WorkDirectory w = work;
                PostgresServer s = server;
                PostgresTarget t = target) {
            // closed in the opposite order
        }
    }

    static Stream<String> scripts() {
        return FILES.names().stream();
    }

    @ParameterizedTest
    @MethodSource("scripts")
    void postgresDoesWhatIsExpected(String name) {
        GoldenScript script = FILES.read(name);
        if (GoldenFiles.writing()) {
            FILES.write(name, GoldenOutcomes.of(script, target));
            return;
        }
        GoldenOutcomes expected = GoldenOutcomes.parse(script.expected());
        for (String level : script.levels()) {
            List<String> all = new ArrayList<>(expected.of(level).keySet());
            assertTrue(all.size() > 2, name + " expects too little at " + level);
            int count = GoldenFiles.all() ? all.size() : Math.min(SAMPLE, all.size());
            for (int i = 0; i < count; i++) {
                String interleaving = all.get((int) ((long) i * all.size() / count));
                ScriptRunner.Run run = new ScriptRunner(script, target).one(level, interleaving);
                String where = name + " at " + level + ", ";
                assertEquals(where + interleaving, where + run.interleaving());
                assertEquals(
                        expected.of(level).get(interleaving), run.outcome(), where + interleaving);
            }
        }
    }
}
