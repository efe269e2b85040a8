package org.pgkernel.heap;

/**
 * Where visibility checks leave what they learned of a tuple's transactions.
 *
 * <p>A hint may be set under a shared content lock. Two readers that set hints of one tuple at once
 * may lose one of them, which costs a look-up later and nothing else: all other bits of the word
 * change only under the exclusive lock.
 */
public interface HintBits {
    /** Sets nothing: the page is only read. */
    HintBits NONE =
            new HintBits() {
                @Override
                public boolean maySetAfter(long commitLsn) {
                    return false;
                }

                @Override
                public void set(int at, int bits) {
                    // Nothing to keep.
                }
            };

    /**
     * True if a page with the hint cannot reach the disk before WAL up to {@code commitLsn}: the
     * page's own LSN is not before it, or the page is not of a permanent relation. (PostgreSQL:
     * SetHintBits.)
     */
    boolean maySetAfter(long commitLsn);

    /** Adds bits to the infomask of the tuple whose header is at {@code at}. */
    void set(int at, int bits);
}
