package org.pgkernel.bufmgr;

import org.agrona.concurrent.UnsafeBuffer;

/**
 * Buffers in the order in which they were put in, linked both ways through two arrays outside the
 * heap. Queues may share the arrays if each marks its links; a buffer is in one of them at most.
 *
 * <pre>
 *  newer, 4 B a buffer: mark | 0 not in a queue, 1 nothing newer, else buffer + 2
 *  older, 4 B a buffer:        0 not in a queue, 1 nothing older, else buffer + 2
 * </pre>
 *
 * Changed under the lock of the policy that owns it. Links may be read without it, as hints: they
 * always name a buffer or nothing.
 */
final class BufferQueue {
    static final int NONE = -1;
    private static final int END = 1;
    private static final int LINK = (1 << 30) - 1;

    private final UnsafeBuffer newer;
    private final UnsafeBuffer older;
    private final int mark;

    /** Coded like a link. Written under the policy's lock. */
    private volatile int head = END;

    private volatile int tail = END;
    private int size;

    /**
     * @param mark {@code 0} or {@code 1 << 30}; not that of another queue over the same arrays
     */
    BufferQueue(UnsafeBuffer newer, UnsafeBuffer older, int mark) {
        this.newer = newer;
        this.older = older;
        this.mark = mark;
    }

    /** The buffer that came first; {@link #NONE} when the queue is empty. */
    int tail() {
        int link = tail;
        return link == END ? NONE : link - 2;
    }

    int size() {
        return size;
    }

    /** The buffer put in after this one; {@link #NONE} for the newest and for one in no queue. */
    int newer(int buffer) {
        int link = newer.getIntVolatile(buffer << 2) & LINK;
        return link < 2 ? NONE : link - 2;
    }

    boolean contains(int buffer) {
        int word = newer.getIntVolatile(buffer << 2);
        return word != 0 && (word & ~LINK) == mark;
    }

    /** Puts a buffer in that is in no queue. */
    void add(int buffer) {
        assert newer.getInt(buffer << 2) == 0 : "buffer is in a queue";
        int first = head;
        newer.putInt(buffer << 2, END | mark);
        older.putInt(buffer << 2, first);
        if (first == END) {
            tail = buffer + 2;
        } else {
            newer.putIntVolatile(first - 2 << 2, buffer + 2 | mark);
        }
        head = buffer + 2;
        size++;
    }

    /** Takes a buffer out that is in this queue. */
    void remove(int buffer) {
        assert contains(buffer) : "buffer is not in this queue";
        int next = newer.getInt(buffer << 2) & LINK;
        int before = older.getInt(buffer << 2);
        if (next == END) {
            head = before;
        } else {
            older.putInt(next - 2 << 2, before);
        }
        if (before == END) {
            tail = next;
        } else {
            newer.putIntVolatile(before - 2 << 2, next | mark);
        }
        newer.putInt(buffer << 2, 0);
        older.putInt(buffer << 2, 0);
        size--;
    }

    /** Walks it both ways. For the inspection, at rest. @return what is wrong, or null */
    String fault() {
        int count = 0;
        int before = END;
        for (int link = tail; link != END; link = newer.getInt(link - 2 << 2) & LINK) {
            if (++count > size || !contains(link - 2)) {
                return "loop or stranger in a queue";
            }
            if (older.getInt(link - 2 << 2) != before) {
                return "a queue's links do not agree";
            }
            before = link;
        }
        return count != size || head != before ? "a queue's size or head is wrong" : null;
    }
}
