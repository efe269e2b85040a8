package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.*;

import java.util.List;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.recovery.RecoveryModuleProvider;
import org.pgkernel.recovery.ResourceManager;

class XactProviderTest {
    @Test
    void isFoundOnTheClassPath() {
        assertTrue(
                ServiceLoader.load(RecoveryModuleProvider.class).stream()
                        .anyMatch(found -> found.type() == XactModuleProvider.class));
    }

    @Test
    void resourceManagersHaveThePlacesAndNamesThatPgWaldumpPrints() {
        List<ResourceManager> managers =
                new XactModule(new PosixDisk(), "unused").resourceManagers();
        assertEquals(
                List.of("1 Transaction", "3 CLOG", "6 MultiXact", "8 Standby", "18 CommitTs"),
                managers.stream().map(m -> m.id() + " " + m.name()).toList());
        ResourceManager transaction = managers.get(0);
        assertEquals("COMMIT", transaction.identify(0x80), "the flag bit is not part of the type");
        assertEquals("INVALIDATION", transaction.identify(0x60));
        assertNull(transaction.identify(0x70));
        assertTrue(transaction.covers(0x80 | 0x20));
        assertFalse(transaction.covers(0x10), "PREPARE");
        assertFalse(transaction.covers(0x30), "COMMIT_PREPARED");
        assertFalse(transaction.covers(0x40), "ABORT_PREPARED");
        assertFalse(transaction.covers(0x70));
        assertFalse(managers.get(1).covers(0x20));
    }
}
