package org.pgkernel.bufmgr;

/**
 * What a drop strategy keeps about which buffers hold pages of which relation fork. {@link
 * BufferAllocator} tells it of every page that comes into a buffer and of every one that goes.
 *
 * <p>Both calls are made with the page's mapping partition locked exclusively, no header locked,
 * and the buffer pinned by the caller, so nobody else maps or unmaps the buffer meanwhile; a buffer
 * that gets another page is first unmapped, then mapped. {@link #mapped} is made before anybody
 * else can finish reading the page; {@link #unmapped} after the tag is gone. So whatever counts or
 * lists pages has, at any time, all that are there and perhaps some that have just gone: never too
 * few.
 */
sealed interface ResidencyTracker permits Untracked, ResidentForks, BufferLists {
    void mapped(int buffer, int spc, int db, int rel, int fork, int block);

    void unmapped(int buffer, int spc, int db, int rel, int fork);

    /** Gives its memory back. */
    void release();
}
