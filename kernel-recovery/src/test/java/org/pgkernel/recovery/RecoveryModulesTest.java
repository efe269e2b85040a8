package org.pgkernel.recovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.error.RefusedException;

class RecoveryModulesTest {
    @TempDir Path dir;

    @Test
    void everyResourceManagerMustBeFoundOrIsNamed() throws IOException {
        try (TestCluster cluster = new TestCluster(dir)) {
            RecoveryEnvironment environment =
                    new RecoveryEnvironment(cluster.disk, dir.toString(), null, null);
            try (RecoveryModules all = RecoveryModules.of(cluster.providers(), environment)) {
                for (int i = 0; i < RmgrIds.COUNT; i++) {
                    assertEquals(i, all.manager(i).id());
                }
                assertEquals(null, all.manager(22));
                assertEquals(null, all.manager(128));
                assertEquals(CheckpointParticipant.Order.SLRU, all.participants().get(0).order());
                assertEquals("XLOG/NEXTOID", all.identify(RmgrIds.XLOG, XlogRedo.NEXTOID));
                assertEquals("XLOG/UNKNOWN (C0)", all.identify(RmgrIds.XLOG, 0xC0));
            }
            List<RecoveryModuleProvider> second = List.of(cluster.providers().get(1));
            String message =
                    assertThrows(
                                    RefusedException.class,
                                    () -> RecoveryModules.of(second, environment))
                            .getMessage();
            assertTrue(
                    message.contains(
                            "XLOG, Database, Tablespace, RelMap, ReplicationOrigin, LogicalMessage"),
                    message);
            List<RecoveryModuleProvider> first = List.of(cluster.providers().get(0));
            assertTrue(
                    assertThrows(
                                    RefusedException.class,
                                    () -> RecoveryModules.of(first, environment))
                            .getMessage()
                            .contains("counters"));
            List<RecoveryModuleProvider> twice =
                    List.of(
                            cluster.providers().get(0),
                            cluster.providers().get(0),
                            cluster.providers().get(1));
            assertTrue(
                    assertThrows(
                                    RefusedException.class,
                                    () -> RecoveryModules.of(twice, environment))
                            .getMessage()
                            .contains("two recovery modules bring"));
        }
    }
}
