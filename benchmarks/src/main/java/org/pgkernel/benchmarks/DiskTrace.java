package org.pgkernel.benchmarks;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.agrona.BufferUtil;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.testkit.ForwardingDisk;

/**
 * Notes which file was written where and how long and when it was synced, and does the same again,
 * plainly, with other bytes and other files.
 *
 * <p>Files are told apart by the order in which they are first written. One thread writes at a
 * time, and what orders these writes orders the notes.
 */
final class DiskTrace extends ForwardingDisk {
    private static final int SYNC = -1;

    private record Call(int file, int length, long offset) {}

    private final List<Call> calls = new ArrayList<>();
    private final Map<String, Integer> files = new HashMap<>();

    DiskTrace(Disk disk) {
        super(disk);
    }

    void clear() {
        calls.clear();
        files.clear();
    }

    int files() {
        return files.size();
    }

    int count(boolean syncs) {
        return (int) calls.stream().filter(c -> c.length == SYNC == syncs).count();
    }

    long bytes() {
        return calls.stream().mapToLong(c -> Math.max(0, c.length)).sum();
    }

    /** Does it all again, in files of the directory that are there already. @return nanoseconds */
    long repeat(Disk disk, Path directory, ByteBuffer from) {
        DiskFile[] opened = new DiskFile[files.size()];
        long begin = System.nanoTime();
        for (Call call : calls) {
            if (opened[call.file] == null) {
                opened[call.file] = disk.open(directory.resolve("" + call.file).toString());
            }
            if (call.length == SYNC) {
                opened[call.file].dataSync();
            } else {
                opened[call.file].write(BufferUtil.address(from), call.length, call.offset);
            }
        }
        long nanos = System.nanoTime() - begin;
        for (DiskFile file : opened) {
            file.close();
        }
        return nanos;
    }

    @Override
    protected DiskFile opened(DiskFile file) {
        return new ForwardingFile(file) {
            @Override
            public void write(long address, int length, long offset) {
                note(path(), length, offset);
                super.write(address, length, offset);
            }

            @Override
            public void dataSync() {
                note(path(), SYNC, 0);
                super.dataSync();
            }
        };
    }

    private void note(String path, int length, long offset) {
        calls.add(new Call(files.computeIfAbsent(path, p -> files.size()), length, offset));
    }
}
