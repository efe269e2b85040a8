package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.util.List;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Crc32c;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;

/** WAL-1: any bytes give records or a typed end. */
class WalDamageProperties {
    private static final int SEGMENTS = 4;

    @Property(tries = 150)
    void aDamagedLogGivesTheUnchangedRecordsBeforeTheDamageAndAnEnd(@ForAll long seed)
            throws IOException {
        Random random = new Random(seed);
        try (WalLog log = new WalLog(1 << 16)) {
            RandomRecords records = new RandomRecords(seed);
            try (WalWriter writer = log.writer()) {
                while (writer.nextRecordLsn() < (long) SEGMENTS * log.segmentSize) {
                    writer.append(records.next(30_000));
                }
                writer.flush();
            }
            List<WalLog.Copy> before = log.read();
            for (int i = 1 + random.nextInt(4); i > 0; i--) {
                damage(log, random);
            }
            List<WalLog.Copy> after = log.read();
            assertTrue(after.size() <= before.size());
            assertEquals(before.subList(0, after.size()), after);
            assertNotNull(log.end);
        }
    }

    @Property(tries = 200)
    void garbageIsNoRecordAndNoException(
            @ForAll long seed, @ForAll @IntRange(min = 0, max = 1 << 16) int offset)
            throws IOException {
        Random random = new Random(seed);
        try (WalLog log = new WalLog(1 << 16)) {
            byte[] garbage = new byte[random.nextInt(log.segmentSize + 1)];
            random.nextBytes(garbage);
            // Good page headers let the garbage come further.
            for (int at = 0;
                    random.nextInt(20) != 0 && at + WalPageHeader.LONG_SIZE <= garbage.length;
                    at += WalLog.PAGE) {
                UnsafeBuffer page = new UnsafeBuffer(garbage);
                WalPageHeader.init(
                        page, at, log.segmentSize + at, 1, log.segmentSize, WalLog.SYSTEM);
                if (random.nextBoolean()) {
                    WalPageHeader.setContinuation(page, at, random.nextInt());
                }
                int record = at + (offset & 0x1FF8);
                if (record + 4 <= garbage.length) {
                    page.putInt(record, random.nextInt(40_000));
                }
            }
            Files.write(log.file(1, log.start), garbage);
            try (WalReader reader = log.reader()) {
                reader.begin(log.segmentSize + offset);
                for (int i = 0; i < 3; i++) {
                    assertEquals(null, reader.next());
                    assertNotNull(reader.end());
                }
                assertTrue(reader.assemblyCapacity() < 1 << 20);
            }
        }
    }

    /** WAL-3. */
    @Property(tries = 2000)
    void contentThatContradictsItselfIsAnEndAlthoughTheChecksumIsRight(@ForAll long seed) {
        Random random = new Random(seed);
        RandomRecords records = new RandomRecords(seed);
        UnsafeBuffer bytes = new UnsafeBuffer(new byte[1 << 16]);
        int length = records.next(300).encode(bytes, 8, 0);
        for (int i = length == WalRecordFormat.HEADER_SIZE ? 0 : 1 + random.nextInt(3);
                i > 0;
                i--) {
            // Headers mostly, where it matters.
            int at =
                    WalRecordFormat.HEADER_SIZE
                            + random.nextInt(
                                    Math.min(
                                            random.nextBoolean() ? 80 : 70_000,
                                            length - WalRecordFormat.HEADER_SIZE));
            bytes.putByte(
                    8 + at,
                    (byte) (random.nextBoolean() ? random.nextInt(256) : random.nextInt(40)));
        }
        length =
                random.nextInt(4) == 0
                        ? WalRecordFormat.HEADER_SIZE
                                + random.nextInt(length - WalRecordFormat.HEADER_SIZE + 1)
                        : length;
        UnsafeBuffer inNative = new UnsafeBuffer(java.nio.ByteBuffer.allocateDirect(length + 8));
        inNative.putBytes(8, bytes, 8, length);
        WalRecord record = new WalRecord();
        if (record.decode(inNative, 8, length, 100, 200) == null) {
            try {
                WalLog.Copy copy = WalLog.copy(record);
                int total = copy.data().capacity();
                for (WalLog.Block block : copy.blocks().values()) {
                    total += block.data().capacity();
                }
                assertTrue(total <= length);
            } catch (DamagedDataException e) {
                assertTrue(e.getMessage().contains("lsn=0/64"), e.getMessage());
            }
        }
    }

    /** The same, through the reader: never an exception, and the log ends there or goes on. */
    @Property(tries = 300)
    void aRecordWithFalseHeadersButRightChecksumEndsTheLogOrIsRead(@ForAll long seed) {
        Random random = new Random(seed);
        try (WalLog log = new WalLog(1 << 16)) {
            RandomRecords records = new RandomRecords(seed);
            UnsafeBuffer bytes = new UnsafeBuffer(new byte[1 << 16]);
            int length = records.next(300).encode(bytes, 0, 0);
            try (WalWriter writer = log.writer()) {
                writer.append(records.builder);
                writer.flush();
            }
            if (length > WalLog.PAGE - WalPageHeader.LONG_SIZE
                    || length == WalRecordFormat.HEADER_SIZE) {
                return;
            }
            bytes.putByte(
                    WalRecordFormat.HEADER_SIZE
                            + random.nextInt(length - WalRecordFormat.HEADER_SIZE),
                    (byte) random.nextInt(256));
            Crc32c crc = new Crc32c();
            crc.update(bytes, WalRecordFormat.HEADER_SIZE, length - WalRecordFormat.HEADER_SIZE);
            crc.update(bytes, 0, WalRecordFormat.XL_CRC);
            bytes.putInt(WalRecordFormat.XL_CRC, crc.value());
            byte[] patched = new byte[length];
            bytes.getBytes(0, patched);
            log.patch(log.start, patched);
            try (WalReader reader = log.reader()) {
                reader.begin(log.start);
                WalRecord record = reader.next();
                assertTrue(
                        record != null
                                || reader.end().reason() == EndOfWal.Reason.BAD_RECORD_CONTENT);
            }
        }
    }

    private static void damage(WalLog log, Random random) throws IOException {
        long lsn = log.segmentSize + random.nextInt((SEGMENTS - 1) * log.segmentSize);
        byte[] bytes;
        switch (random.nextInt(6)) {
            case 0 -> {
                try (RandomAccessFile file =
                        new RandomAccessFile(log.file(1, lsn).toFile(), "rw")) {
                    file.setLength(lsn & log.segmentSize - 1);
                }
                return;
            }
            case 1 -> {
                Files.deleteIfExists(log.file(1, lsn));
                return;
            }
            case 2 -> bytes = new byte[1 + random.nextInt(2 * WalLog.PAGE)];
            case 3 -> {
                bytes = new byte[1 + random.nextInt(40)];
                random.nextBytes(bytes);
            }
            case 4 -> {
                // The first bytes of a page: flags, address, remaining length.
                lsn = lsn & -WalLog.PAGE | random.nextInt(24);
                bytes = new byte[] {(byte) random.nextInt(32)};
            }
            default -> {
                // A page of elsewhere, as a lost write or a recycled file leaves it.
                long other =
                        log.segmentSize + random.nextInt((SEGMENTS - 1) * log.segmentSize)
                                & -WalLog.PAGE;
                if (!Files.exists(log.file(1, other))
                        || Files.size(log.file(1, other)) < log.segmentSize) {
                    return;
                }
                bytes = log.bytes(other, Page.SIZE);
                lsn &= -WalLog.PAGE;
            }
        }
        if (Files.exists(log.file(1, lsn))) {
            log.patch(lsn, bytes);
        }
    }
}
