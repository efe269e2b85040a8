package org.pgkernel.base.disk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.Allocation;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.RefusedException;

final class PosixDiskTest {
    private static final int MEMORY_BYTES = 1 << 16;

    private final Disk disk = new PosixDisk();

    @TempDir Path directory;

    private long address;
    private UnsafeBuffer memory;

    @BeforeEach
    void reserve() {
        address = NativeMemory.reserve(MEMORY_BYTES);
        memory = new UnsafeBuffer(address, MEMORY_BYTES);
    }

    @AfterEach
    void release() {
        NativeMemory.release(address, MEMORY_BYTES);
    }

    private String path(String name) {
        return directory.resolve(name).toString();
    }

    @Test
    void readReturnsWhatWasWritten() throws Exception {
        try (DiskFile file = disk.create(path("f"))) {
            memory.putLong(0, 0x1122334455667788L);
            file.write(address, 8, 8192);
            assertEquals(8200, file.size());
            assertEquals(8, file.read(address + 100, 100, 8192));
            assertEquals(0x1122334455667788L, memory.getLong(100));
            assertEquals(0, file.read(address, 8, 8200), "nothing lies beyond the end");
            file.dataSync();
            file.sync();
            file.prefetch(0, 8192);
            file.startWriteback(0, 8192);
            file.truncate(10);
            assertEquals(10, Files.size(directory.resolve("f")));
            assertEquals(path("f"), file.path());
        }
    }

    @Test
    void readStopsAtTheEndOfTheFile() {
        try (DiskFile file = disk.create(path("f"))) {
            file.write(address, 100, 0);
            memory.setMemory(0, MEMORY_BYTES, (byte) 7);
            assertEquals(60, file.read(address, 8192, 40));
            assertEquals(0, memory.getByte(59));
            assertEquals(7, memory.getByte(60));
        }
    }

    @Test
    void vectoredReadPutsEachPieceAtItsAddress() {
        try (DiskFile file = disk.create(path("f"))) {
            for (int i = 0; i < 300; i++) {
                memory.putInt(0, 1000 + i);
                file.write(address, 16, i * 16L);
            }
            // More pieces than one system call takes, in no order, each with a gap behind it.
            long[] addresses = new long[302];
            for (int i = 0; i < 300; i++) {
                addresses[i + 1] = address + (299 - i) * 32L;
            }
            memory.setMemory(0, MEMORY_BYTES, (byte) 7);
            assertEquals(299 * 16, file.readv(addresses, 2, 299, 16, 16));
            for (int i = 1; i < 300; i++) {
                assertEquals(1000 + i, memory.getInt((299 - i) * 32), "piece " + i);
                assertEquals(0x07070707, memory.getInt((299 - i) * 32 + 16), "after piece " + i);
            }
            assertEquals(0x07070707, memory.getInt(299 * 32), "the piece before was not asked for");
        }
    }

    @Test
    void vectoredReadStopsAtTheEndOfTheFile() {
        for (DiskFile file : new DiskFile[] {disk.create(path("f")), onlySingle(path("g"))}) {
            try (file) {
                memory.setMemory(0, 100, (byte) 1);
                file.write(address, 100, 0);
                memory.setMemory(0, MEMORY_BYTES, (byte) 7);
                long[] addresses = {address, address + 4096, address + 8192};
                assertEquals(60, file.readv(addresses, 0, 3, 40, 40));
                assertEquals(1, memory.getByte(39));
                assertEquals(1, memory.getByte(4096 + 19));
                assertEquals(7, memory.getByte(4096 + 20));
                assertEquals(7, memory.getByte(8192));
                assertEquals(0, file.readv(addresses, 1, 2, 40, 100));
            }
        }
    }

    /** A disk without a vectored read of its own: the seam's fallback must do the same. */
    private DiskFile onlySingle(String path) {
        DiskFile file = disk.create(path);
        return (DiskFile)
                Proxy.newProxyInstance(
                        DiskFile.class.getClassLoader(),
                        new Class<?>[] {DiskFile.class},
                        (self, method, arguments) ->
                                method.getName().equals("readv")
                                        ? InvocationHandler.invokeDefault(self, method, arguments)
                                        : method.invoke(file, arguments));
    }

    @Test
    void vectoredReadOfAClosedFileIsRefusedInWords() {
        DiskFile file = disk.create(path("f"));
        file.close();
        DiskException e =
                assertThrows(
                        DiskException.class,
                        () -> file.readv(new long[] {address, address}, 0, 2, 8192, 16384));
        assertTrue(e.getMessage().startsWith("could not read 16384 bytes at offset 16384"));
        assertTrue(e.getMessage().endsWith("file=" + path("f")), e.getMessage());
    }

    // BASE-1
    @Test
    void interruptedThreadLosesNoFile() {
        try (DiskFile file = disk.create(path("f"))) {
            Thread.currentThread().interrupt();
            memory.putInt(0, 42);
            file.write(address, 8192, 0);
            assertEquals(8192, file.read(address + 8192, 8192, 0));
            file.dataSync();
            assertTrue(Thread.interrupted(), "the flag is the caller's and stays set");
            assertEquals(8192, file.read(address + 8192, 8192, 0));
            assertEquals(42, memory.getInt(8192));
        } finally {
            Thread.interrupted();
        }
    }

    // BASE-2
    @Test
    void transfersAllocateNothing() {
        try (DiskFile file = disk.create(path("f"))) {
            long bytes = Allocation.ofWarm(() -> transfers(file, 10_000), 2_000);
            assertTrue(
                    bytes < 2_000,
                    bytes + " bytes allocated by 10,000 reads, vectored reads and writes");
        }
    }

    private void transfers(DiskFile file, int count) {
        long[] addresses = {address, address + 4096};
        for (int i = 0; i < count; i++) {
            if (file.readv(addresses, 0, 2, 32, 0) > 64) {
                throw new AssertionError("long read");
            }
            file.write(address, 64, (i & 7) * 64L);
            if (file.read(address, 64, (i & 7) * 64L) != 64) {
                throw new AssertionError("short read");
            }
            file.prefetch(0, 64);
        }
    }

    @Test
    void newFilesAndDirectoriesArePrivate() throws Exception {
        disk.create(path("f")).close();
        assertTrue(disk.createDirectory(path("d")));
        assertEquals(
                "rw-------",
                PosixFilePermissions.toString(
                        Files.getPosixFilePermissions(directory.resolve("f"))));
        assertEquals(
                "rwx------",
                PosixFilePermissions.toString(
                        Files.getPosixFilePermissions(directory.resolve("d"))));
    }

    @Test
    void openingTellsMissingFromExisting() {
        assertNull(disk.openIfExists(path("f")));
        assertNull(disk.openReadOnly(path("f")));
        assertEquals(
                DiskException.ENOENT,
                assertThrows(DiskException.class, () -> disk.open(path("f"))).errno());
        disk.openOrCreate(path("f")).close();
        disk.openOrCreate(path("f")).close();
        assertEquals(
                DiskException.EEXIST,
                assertThrows(DiskException.class, () -> disk.create(path("f"))).errno());
        try (DiskFile file = disk.openIfExists(path("f"))) {
            assertNotNull(file);
        }
        try (DiskFile file = disk.openReadOnly(path("f"))) {
            DiskException e = assertThrows(DiskException.class, () -> file.write(address, 1, 0));
            assertTrue(e.getMessage().endsWith("file=" + path("f")), e.getMessage());
        }
    }

    @Test
    void namesAreCreatedRenamedAndRemoved() {
        assertFalse(disk.exists(path("d")));
        assertTrue(disk.createDirectory(path("d")));
        assertFalse(disk.createDirectory(path("d")));
        assertTrue(disk.isDirectory(path("d")));
        disk.create(path("d/a")).close();
        assertFalse(disk.isDirectory(path("d/a")));
        assertFalse(disk.exists(path("d/a/b")), "a file has no entries");
        disk.rename(path("d/a"), path("d/b"));
        disk.create(path("d/c")).close();
        assertEquals(Set.of("b", "c"), Set.copyOf(disk.list(path("d"))));
        assertThrows(DiskException.class, () -> disk.removeDirectory(path("d")));
        assertTrue(disk.unlink(path("d/b")));
        assertFalse(disk.unlink(path("d/b")));
        assertTrue(disk.unlink(path("d/c")));
        disk.syncDirectory(path("d"));
        assertTrue(disk.removeDirectory(path("d")));
        assertFalse(disk.removeDirectory(path("d")));
        assertTrue(disk.list(path("d")).isEmpty());
        assertThrows(DiskException.class, () -> disk.syncDirectory(path("d")));
        assertThrows(DiskException.class, () -> disk.rename(path("d"), path("e")));
    }

    @Test
    void nameWithAZeroByteIsRefused() {
        assertThrows(RefusedException.class, () -> disk.exists("a\0b"));
    }

    @Test
    void closedFileRefusesTransfersAndClosesTwiceQuietly() {
        DiskFile file = disk.create(path("f"));
        file.close();
        file.close();
        assertThrows(DiskException.class, () -> file.read(address, 1, 0));
        assertThrows(DiskException.class, () -> file.write(address, 1, 0));
        assertThrows(DiskException.class, file::size);
        assertThrows(DiskException.class, file::sync);
        assertThrows(DiskException.class, () -> file.truncate(0));
    }

    static boolean hasFullDevice() {
        return Files.isWritable(Path.of("/dev/full"));
    }

    // BASE-3
    @Test
    @EnabledIf("hasFullDevice")
    void fullDiskIsSaidAndMayBeRetried() {
        try (DiskFile file = disk.open("/dev/full")) {
            DiskException e = assertThrows(DiskException.class, () -> file.write(address, 8192, 0));
            assertEquals(DiskException.ENOSPC, e.errno());
            assertTrue(e.mayRetry());
        }
    }

    @Test
    void reservationIsLazyZeroedAndRefusedInWords() {
        long bytes = 100L << 30;
        long large = NativeMemory.reserve(bytes);
        try {
            NativeMemory.adviseHuge(large, 1 << 22);
            UnsafeBuffer tail = new UnsafeBuffer(large + bytes - 8192, 8192);
            assertEquals(0, tail.getLong(0));
            tail.putLong(8184, 1);
        } finally {
            NativeMemory.release(large, bytes);
        }
        RefusedException e =
                assertThrows(RefusedException.class, () -> NativeMemory.reserve(1L << 60));
        assertTrue(e.getMessage().contains(Long.toString(1L << 60)), e.getMessage());
        assertThrows(RefusedException.class, () -> NativeMemory.reserve(0));
    }
}
