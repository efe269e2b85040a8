package org.pgkernel.wal;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.PosixDisk;

/** A WAL directory of real files for a test: writes, reads, and damages it. */
final class WalLog implements AutoCloseable {
    static final long SYSTEM = 0x1122334455667788L;
    static final int PAGE = WalPageHeader.PAGE_SIZE;

    final Path directory;
    final int segmentSize;
    final long start;
    Disk disk = new PosixDisk();

    /** What the last {@link #read} ended with. */
    EndOfWal end;

    long endOfLastRecord;
    long lastRecord;
    long abortedRecord;
    long missingContinuation;
    int fileTimeline;

    WalLog(int segmentSize) {
        this.segmentSize = segmentSize;
        start = segmentSize + WalPageHeader.LONG_SIZE;
        try {
            directory = Files.createTempDirectory("pgkernel-wal");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** A record as read, copied out of the reader. */
    record Copy(
            long lsn,
            long end,
            long prev,
            int xid,
            int rmid,
            int info,
            ByteBuffer data,
            TreeMap<Integer, Block> blocks) {}

    record Block(
            int spc,
            int db,
            int rel,
            ForkNumber fork,
            int block,
            boolean willInit,
            ByteBuffer image,
            ByteBuffer data) {}

    WalWriter writer() {
        return writer(1, start, 0, 0);
    }

    WalWriter writer(int timeline, long startLsn, long prev, long missing) {
        return new WalWriter(
                disk, directory.toString(), timeline, segmentSize, SYSTEM, startLsn, prev, missing);
    }

    WalInserter inserter(int ringBytes) {
        return inserter(start, 0, ringBytes, new WalInserter.Parts());
    }

    WalInserter inserter(long startLsn, long prev, int ringBytes, WalInserter.Parts parts) {
        return new WalInserter(
                disk,
                directory.toString(),
                1,
                segmentSize,
                SYSTEM,
                startLsn,
                prev,
                0,
                0,
                ringBytes,
                parts);
    }

    WalInserter inserter(int timeline, long startLsn, long prev, long missing, int ringBytes) {
        return new WalInserter(
                disk,
                directory.toString(),
                timeline,
                segmentSize,
                SYSTEM,
                startLsn,
                prev,
                missing,
                0,
                ringBytes);
    }

    WalReader reader() {
        return reader(TimelineHistory.of(1));
    }

    WalReader reader(TimelineHistory history) {
        return new WalReader(disk, directory.toString(), history, segmentSize, SYSTEM);
    }

    List<Copy> read() {
        return read(TimelineHistory.of(1), start);
    }

    List<Copy> read(TimelineHistory history, long from) {
        try (WalReader reader = reader(history)) {
            reader.begin(from);
            return drain(reader);
        }
    }

    List<Copy> drain(WalReader reader) {
        List<Copy> copies = new ArrayList<>();
        WalRecord record;
        while ((record = reader.next()) != null) {
            copies.add(copy(record));
        }
        end = reader.end();
        endOfLastRecord = reader.endOfLastRecord();
        lastRecord = reader.lastRecord();
        abortedRecord = reader.abortedRecord();
        missingContinuation = reader.missingContinuation();
        fileTimeline = reader.fileTimeline();
        return copies;
    }

    static Copy copy(WalRecord record) {
        TreeMap<Integer, Block> blocks = new TreeMap<>();
        for (int id = 0; id <= record.maxBlockId(); id++) {
            if (record.hasBlock(id)) {
                ByteBuffer image = null;
                if (record.hasImage(id)) {
                    byte[] page = new byte[Page.SIZE];
                    record.restoreImage(id, new UnsafeBuffer(page));
                    image = ByteBuffer.wrap(page);
                }
                byte[] data = new byte[record.blockDataLength(id)];
                record.blockData(id).getBytes(0, data);
                blocks.put(
                        id,
                        new Block(
                                record.blockSpc(id),
                                record.blockDb(id),
                                record.blockRel(id),
                                record.blockFork(id),
                                record.blockNumber(id),
                                record.willInit(id),
                                image,
                                ByteBuffer.wrap(data)));
            }
        }
        byte[] data = new byte[record.dataLength()];
        record.data().getBytes(0, data);
        return new Copy(
                record.lsn(),
                record.endLsn(),
                record.prevLsn(),
                record.xid(),
                record.rmid(),
                record.info(),
                ByteBuffer.wrap(data),
                blocks);
    }

    /** A record of resource manager 10 with {@code length} bytes of main data. */
    static WalRecordBuilder plain(int length) {
        byte[] data = new byte[length];
        for (int i = 0; i < length; i++) {
            data[i] = (byte) (i * 31 + length);
        }
        return new WalRecordBuilder().begin(10, 0x30, 700).data(new UnsafeBuffer(data), 0, length);
    }

    /** A record of exactly {@code total} bytes. */
    static WalRecordBuilder ofTotalLength(int total) {
        WalRecordBuilder builder = plain(total - 24 - (total - 26 > 255 ? 5 : total == 24 ? 0 : 2));
        if (builder.encodedLength() != total) {
            throw new IllegalArgumentException("no record has " + total + " bytes");
        }
        return builder;
    }

    static WalRecordBuilder overwrite(long lsn) {
        UnsafeBuffer data = new UnsafeBuffer(new byte[16]);
        data.putLong(0, lsn);
        return new WalRecordBuilder().begin(0, 0xD0, 0).data(data, 0, 16);
    }

    /**
     * Appends records until the next one would begin {@code left} bytes before the end of a page,
     * or, for 0, at the end.
     */
    static long fillPageTo(WalWriter writer, int left) {
        writer.append(plain(100));
        long next = writer.nextRecordLsn();
        long target = (next / PAGE + 1) * PAGE - left;
        if (target - next < 1000) {
            target += PAGE;
            long header = WalPageHeader.SHORT_SIZE;
            return writer.append(ofTotalLength((int) (target - next - header)));
        }
        return writer.append(ofTotalLength((int) (target - next)));
    }

    Path file(int timeline, long lsn) {
        return directory.resolve(
                WalSegmentName.fileName(
                        timeline, WalSegmentName.segmentOf(lsn, segmentSize), segmentSize));
    }

    byte[] bytes(long lsn, int length) {
        try (RandomAccessFile file = new RandomAccessFile(file(1, lsn).toFile(), "r")) {
            byte[] bytes = new byte[length];
            file.seek(lsn & segmentSize - 1);
            file.readFully(bytes);
            return bytes;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void patch(long lsn, byte[] bytes) {
        try (RandomAccessFile file = new RandomAccessFile(file(1, lsn).toFile(), "rw")) {
            file.seek(lsn & segmentSize - 1);
            file.write(bytes);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void patchInt(long lsn, int value) {
        byte[] bytes = new byte[4];
        new UnsafeBuffer(bytes).putInt(0, value);
        patch(lsn, bytes);
    }

    /** Copies the log's files, for a later comparison or another damage. */
    WalLog copyOf() {
        WalLog copy = new WalLog(segmentSize);
        try (Stream<Path> files = Files.list(directory)) {
            for (Path file : files.toList()) {
                Files.copy(file, copy.directory.resolve(file.getFileName()));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return copy;
    }

    @Override
    public void close() {
        try (Stream<Path> files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
