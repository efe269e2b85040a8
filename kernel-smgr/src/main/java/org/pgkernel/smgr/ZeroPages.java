package org.pgkernel.smgr;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.disk.NativeMemory;

/**
 * Native memory of zeros to write files from; never written to, hence never given back and shared
 * by all.
 */
final class ZeroPages {
    /** Pages that one write may take. */
    static final int COUNT = 64;

    static final long ADDRESS = NativeMemory.reserve((long) COUNT * BlockNumber.PAGE_SIZE);

    private ZeroPages() {}
}
