package org.pgkernel.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class SharedBuffersTest {
    @ParameterizedTest
    @CsvSource({
        "128MB,16384",
        "1GB,131072",
        "100GB,13107200",
        "512GB,67108864",
        "16,16",
        "128kB,16",
        " 10GB ,1310720"
    })
    void sizesAreReadAsPostgresqlWritesThem(String text, int buffers) {
        assertEquals(buffers, SharedBuffers.parse(text).buffers());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "GB",
                "10gb",
                "10 GB",
                "-1GB",
                "1.5GB",
                "15",
                "120kB",
                "513GB",
                "99999999999",
                "1TB"
            })
    void anythingElseIsRefusedInOneSentence(String text) {
        IllegalArgumentException refusal =
                assertThrows(IllegalArgumentException.class, () -> SharedBuffers.parse(text));
        assertTrue(refusal.getMessage().contains(text), refusal.getMessage());
    }

    @Test
    void theTextIsKeptForTables() {
        assertEquals("100GB", SharedBuffers.parse("100GB").toString());
    }
}
