package org.pgkernel.benchmarks;

import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.testkit.ForwardingDisk;

/**
 * A disk that costs nothing: what is written over a file's bytes is lost, and syncs return at once.
 * Only files that grow are written, so that they have the length their owner looks at.
 */
final class FreeDisk extends ForwardingDisk {
    FreeDisk(Disk disk) {
        super(disk);
    }

    @Override
    protected DiskFile opened(DiskFile file) {
        return new ForwardingFile(file) {
            private long size = file.size();

            @Override
            public void write(long address, int length, long offset) {
                if (offset + length > size) {
                    super.write(address, length, offset);
                    size = offset + length;
                }
            }

            @Override
            public void truncate(long size) {
                super.truncate(size);
                this.size = size;
            }

            @Override
            public void dataSync() {}

            @Override
            public void sync() {}

            @Override
            public void startWriteback(long offset, long length) {}
        };
    }

    @Override
    public void syncDirectory(String path) {}
}
