package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.NativeMemory;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.testkit.SimulatedDisk;

/**
 * A data directory with one database, a manager over it with segments of 8 blocks, and a page of
 * native memory.
 */
final class Fixture implements AutoCloseable {
    static final int SEGMENT = 8;
    static final int PAGE = BlockNumber.PAGE_SIZE;
    static final int SPC = 1663;
    static final int DB = 5;
    static final ForkNumber MAIN = ForkNumber.MAIN;

    /** The data directory on a simulated disk. */
    static final String DATA = "/data";

    final Path directory;
    final Disk disk;
    final SyncRequests requests;
    final StorageManager manager;
    final long address = NativeMemory.reserve(PAGE);
    final UnsafeBuffer page = new UnsafeBuffer(address, PAGE);

    Fixture(Path directory, SizePolicy policy) {
        this(directory, policy, new PosixDisk(), 100);
    }

    Fixture(Path directory, SizePolicy policy, Disk disk, int maxOpenFiles) {
        this(withDirectories(directory), disk, policy, maxOpenFiles);
    }

    /** In {@link #DATA} of a disk that has its directories. */
    Fixture(Disk disk, SizePolicy policy, int maxOpenFiles) {
        this(Path.of(DATA), disk, policy, maxOpenFiles);
    }

    private Fixture(Path directory, Disk disk, SizePolicy policy, int maxOpenFiles) {
        this.directory = directory;
        this.disk = disk;
        requests = new SyncRequests(disk, directory.toString());
        manager =
                new StorageManager(
                        disk, directory.toString(), SEGMENT, policy, requests, maxOpenFiles);
    }

    /** A disk with the directories of {@link #DATA}. */
    static SimulatedDisk simulated(long seed) {
        return new SimulatedDisk(seed).directories(DATA + "/base/" + DB, DATA + "/global");
    }

    private static Path withDirectories(Path directory) {
        try {
            Files.createDirectories(directory.resolve("base/" + DB));
            Files.createDirectories(directory.resolve("global"));
            return directory;
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    SmgrRelation relation(int number) {
        return manager.open(SPC, DB, number);
    }

    /**
     * A relation whose main fork has blocks 0 to {@code blocks - 1}, each filled with its number.
     */
    SmgrRelation filled(int number, int blocks) {
        SmgrRelation relation = relation(number);
        relation.create(MAIN, false);
        for (int block = 0; block < blocks; block++) {
            extend(relation, MAIN, block, block);
        }
        return relation;
    }

    void extend(SmgrRelation relation, ForkNumber fork, int block, int fill) {
        page.setMemory(0, PAGE, (byte) fill);
        relation.extend(fork, block, address, false);
    }

    void write(SmgrRelation relation, ForkNumber fork, int block, int fill) {
        page.setMemory(0, PAGE, (byte) fill);
        relation.write(fork, block, address, false);
    }

    /** Reads a block, all of whose bytes must be equal, and gives the byte. */
    int read(SmgrRelation relation, ForkNumber fork, int block) {
        page.setMemory(0, PAGE, (byte) 0x55);
        relation.read(fork, block, address);
        int first = page.getByte(0) & 0xFF;
        for (int i = 0; i < PAGE; i += Long.BYTES) {
            if (page.getLong(i) != first * 0x0101010101010101L) {
                assertEquals(
                        first * 0x0101010101010101L,
                        page.getLong(i),
                        "bytes from " + i + " on of block " + block);
            }
        }
        return first;
    }

    Path file(String name) {
        return directory.resolve("base/" + DB + "/" + name);
    }

    /** Length of a file in whole blocks, -1 when it does not exist. */
    long fileBlocks(String name) throws IOException {
        Path file = file(name);
        return Files.exists(file) ? Files.size(file) / PAGE : -1;
    }

    /** One whole checkpoint's part in files. */
    int checkpoint() {
        requests.preCheckpoint();
        int synced = requests.process();
        requests.postCheckpoint();
        return synced;
    }

    /** Descriptors of this process that lead into the directory. */
    static int descriptors(Path directory) throws IOException {
        int count = 0;
        try (Stream<Path> entries = Files.list(Path.of("/proc/self/fd"))) {
            for (Path entry : (Iterable<Path>) entries::iterator) {
                try {
                    if (Files.readSymbolicLink(entry).startsWith(directory)) {
                        count++;
                    }
                } catch (IOException e) {
                    // Closed meanwhile.
                }
            }
        }
        return count;
    }

    @Override
    public void close() {
        manager.close();
        NativeMemory.release(address, PAGE);
    }
}
