package org.pgkernel.bufmgr;

import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.testkit.ForwardingDisk;

/** A disk that asks a hook before each transfer; the hook may wait, note, or throw. */
final class HookedDisk extends ForwardingDisk {
    /** What happens before a transfer. */
    interface Hook {
        void before(String path, long offset) throws RuntimeException;
    }

    /** The same with a length in bytes. */
    interface LengthHook {
        void before(String path, long offset, long length);
    }

    /** What a file's size is said to be. */
    interface SizeHook {
        long of(String path, long size);
    }

    volatile LengthHook onWriteback = (path, offset, length) -> {};
    volatile Hook beforeSync = (path, offset) -> {};

    /** Called for each file that was opened, by whatever call. */
    volatile Hook afterOpen = (path, offset) -> {};

    /** Called for each block, also of a read of several. */
    volatile Hook beforeRead = (path, offset) -> {};

    /** Called once for a read of several blocks, after {@link #beforeRead} for each. */
    volatile Hook beforeVectoredRead = (path, offset) -> {};

    volatile SizeHook sizeOf = (path, size) -> size;
    volatile LengthHook beforePrefetch = (path, offset, length) -> {};
    volatile Hook beforeWrite = (path, offset) -> {};
    volatile Hook afterWrite = (path, offset) -> {};

    HookedDisk(Disk disk) {
        super(disk);
    }

    @Override
    protected DiskFile opened(DiskFile file) {
        afterOpen.before(file.path(), 0);
        return new HookedFile(file);
    }

    private final class HookedFile extends ForwardingDisk.ForwardingFile {
        private final DiskFile file;

        HookedFile(DiskFile file) {
            super(file);
            this.file = file;
        }

        @Override
        public int read(long address, int length, long offset) {
            beforeRead.before(file.path(), offset);
            return file.read(address, length, offset);
        }

        @Override
        public int readv(long[] addresses, int first, int count, int length, long offset) {
            for (int i = 0; i < count; i++) {
                beforeRead.before(file.path(), offset + (long) i * length);
            }
            beforeVectoredRead.before(file.path(), offset);
            return file.readv(addresses, first, count, length, offset);
        }

        @Override
        public void write(long address, int length, long offset) {
            beforeWrite.before(file.path(), offset);
            file.write(address, length, offset);
            afterWrite.before(file.path(), offset);
        }

        @Override
        public long size() {
            return sizeOf.of(file.path(), file.size());
        }

        @Override
        public void sync() {
            beforeSync.before(file.path(), 0);
            file.sync();
        }

        @Override
        public void prefetch(long offset, long length) {
            beforePrefetch.before(file.path(), offset, length);
            file.prefetch(offset, length);
        }

        @Override
        public void startWriteback(long offset, long length) {
            onWriteback.before(file.path(), offset, length);
            file.startWriteback(offset, length);
        }
    }
}
