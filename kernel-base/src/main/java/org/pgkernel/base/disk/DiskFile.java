package org.pgkernel.base.disk;

/**
 * An open file. Transfers go straight between the file and memory at a native address (the pool's,
 * a WAL page's): no copy, no allocation. Offsets and lengths are bytes. Thread-safe but for {@link
 * #close}.
 */
public interface DiskFile extends AutoCloseable {
    String path();

    /**
     * Reads up to {@code length} bytes at {@code offset}; repeats short reads until the length is
     * reached or the file ends.
     *
     * @return bytes read, less than {@code length} only at the end of the file
     */
    int read(long address, int length, long offset);

    /**
     * Reads consecutive pieces of the file, all of {@code length} bytes, each to an address of its
     * own: {@code addresses[first]} gets the piece at {@code offset}, the next address the piece
     * after it. A disk that knows no better way reads them one by one. (PostgreSQL: FileReadV, of
     * 17.)
     *
     * @param count pieces, at least 1
     * @return bytes read, less than {@code count * length} only at the end of the file
     */
    default int readv(long[] addresses, int first, int count, int length, long offset) {
        int done = 0;
        for (int i = 0; i < count; i++) {
            int bytes = read(addresses[first + i], length, offset + done);
            done += bytes;
            if (bytes < length) {
                break;
            }
        }
        return done;
    }

    /**
     * Writes all of {@code length} bytes at {@code offset}. A short write that cannot go on fails
     * with ENOSPC.
     */
    void write(long address, int length, long offset);

    /** Length of the file in bytes. */
    long size();

    /** Cuts or (sparsely) extends the file. */
    void truncate(long size);

    /** Makes the file's data, and the metadata needed to read it, durable. */
    void dataSync();

    /** Makes data and all metadata durable. */
    void sync();

    /** Tells the system that the range will be read soon; a hint, never fails. */
    void prefetch(long offset, long length);

    /**
     * Starts write-out of dirty pages of the range without waiting; a hint, never fails.
     * (PostgreSQL: pg_flush_data.)
     */
    void startWriteback(long offset, long length);

    @Override
    void close();
}
