package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.pgkernel.base.error.DamagedDataException;

class TimelineHistoryProperties {
    @Property(tries = 300)
    void anyBytesAreAHistoryOrDamage(@ForAll byte[] bytes, @ForAll long seed) throws IOException {
        try (WalLog own = new WalLog(1 << 16)) {
            Random random = new Random(seed);
            byte[] text =
                    random.nextBoolean()
                            ? bytes
                            : "1\t0/3000060\tr\n2\t1/5000000\tr\n"
                                    .getBytes(StandardCharsets.ISO_8859_1);
            if (text.length > 0) {
                text[random.nextInt(text.length)] = (byte) random.nextInt(256);
            }
            Files.write(own.directory.resolve("00000009.history"), text);
            try {
                TimelineHistory history =
                        TimelineHistory.read(own.disk, own.directory.toString(), 9);
                assertEquals(9, history.newest());
            } catch (DamagedDataException e) {
                assertTrue(e.getMessage().contains("file="));
            }
        }
    }
}
