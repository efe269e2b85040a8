package org.pgkernel.testkit;

import java.nio.charset.StandardCharsets;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.disk.NativeMemory;

/** Small words for using a disk from a test. */
final class DiskProbe {
    private static final int ROOM = 1 << 16;
    private static final long ADDRESS = NativeMemory.reserve(ROOM);
    private static final UnsafeBuffer BUFFER = new UnsafeBuffer(ADDRESS, ROOM);

    private DiskProbe() {}

    static void write(DiskFile file, long offset, byte[] bytes) {
        synchronized (BUFFER) {
            BUFFER.putBytes(0, bytes);
            file.write(ADDRESS, bytes.length, offset);
        }
    }

    static void write(DiskFile file, long offset, int length, int fill) {
        byte[] bytes = new byte[length];
        java.util.Arrays.fill(bytes, (byte) fill);
        write(file, offset, bytes);
    }

    static void write(DiskFile file, long offset, String text) {
        write(file, offset, text.getBytes(StandardCharsets.US_ASCII));
    }

    static byte[] read(DiskFile file, long offset, int length) {
        synchronized (BUFFER) {
            byte[] bytes = new byte[file.read(ADDRESS, length, offset)];
            BUFFER.getBytes(0, bytes);
            return bytes;
        }
    }

    /** Creates a file, durable with its name. */
    static DiskFile durable(Disk disk, String path, int length, int fill) {
        DiskFile file = disk.create(path);
        write(file, 0, length, fill);
        file.sync();
        disk.syncDirectory(path.substring(0, path.lastIndexOf('/')));
        return file;
    }

    static String text(SimulatedDisk disk, String path) {
        byte[] content = disk.content(path);
        return content == null ? null : new String(content, StandardCharsets.US_ASCII);
    }
}
