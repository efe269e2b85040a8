package org.pgkernel.index;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Files;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.wal.WalWriter;

class RecordCheckTest {
    private static final int SEGMENT = 1 << 20;
    private static final long START = SEGMENT + 40;

    @TempDir Path directory;

    /** Redo holds the pages of a split together: one named twice would never be got again. */
    @Test
    void onePageInTwoReferencesIsDamageAndNoDeadlock() throws Exception {
        String wal = Files.createDirectories(directory.resolve("pg_wal")).toString();
        PosixDisk disk = new PosixDisk();
        WalRecordBuilder builder = new WalRecordBuilder();
        UnsafeBuffer main = new UnsafeBuffer(new byte[10]);
        builder.begin(11, BtreeResourceManager.SPLIT_L, 700).data(main, 0, 10);
        builder.block(0, 1663, 5, 7, ForkNumber.MAIN, 3, 0);
        builder.block(1, 1663, 5, 7, ForkNumber.MAIN, 3, 0x40);
        builder.block(2, 1663, 5, 7, ForkNumber.MAIN, 4, 0);
        try (WalWriter writer = new WalWriter(disk, wal, 1, SEGMENT, 1, START, 0, 0);
                WalReader reader = new WalReader(disk, wal, TimelineHistory.of(1), SEGMENT, 1)) {
            writer.append(builder);
            writer.flush();
            reader.begin(START);
            WalRecord record = reader.next();
            assertThrows(DamagedDataException.class, () -> RecordCheck.distinct(record, 0, 1));
            assertDoesNotThrow(() -> RecordCheck.distinct(record, 0, 2));
            assertThrows(
                    DamagedDataException.class,
                    () -> new BtreeSplitRedo().redo(record, null, true));
        }
    }
}
