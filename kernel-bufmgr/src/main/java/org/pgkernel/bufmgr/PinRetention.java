package org.pgkernel.bufmgr;

/**
 * Pins that backends keep after they have released them, so that a page which many use at once is
 * used without writing to a word that all of them share.
 *
 * <p>Each change of a word that another processor has just changed costs about 40 ns, whatever the
 * change. So a backend that meets another at a buffer's state word when it gives its pin back does
 * not: the pin stays in the pin count, <em>idle</em>, in a slot of the backend's own ({@link
 * RetainedPins}). The next read of the page makes the slot <em>active</em>, the next release idle
 * again, by changes of a cache line that nobody else writes. The buffer is noted as hot; other
 * backends then keep their pins of it too, and nobody is left who writes the word. Who never meets
 * anybody never retains.
 *
 * <p>An idle pin is not a pin: nobody uses the page. Whoever needs the pin count to go down takes
 * idle pins back ({@link #takeBack}): empties the slot, then takes the pin away on its owner's
 * behalf, and wakes the cleanup waiter if that is due.
 *
 * <pre>
 *            owner              owner                    owner's or anybody's CAS
 *  active  -------->  idle  ------------->  active  or  idle  ---->  empty, then pin count - 1
 *           store              CAS
 * </pre>
 *
 * <ul>
 *   <li><em>The page stays.</em> While a slot names a buffer, idle or active, the buffer's pin
 *       count holds one for it: so the buffer keeps its tag, and its page, valid when the slot was
 *       filled, stays valid. An owner whose CAS from idle to active succeeds had the pin all the
 *       time since he made the slot idle, as only he makes slots idle; so the tag that he compared
 *       before the CAS was the buffer's. (Had the pin been taken back and the buffer renamed under
 *       his eyes, the CAS would fail.)
 *   <li><em>No pin goes twice.</em> An idle slot is emptied or made active by CAS only: one of
 *       those who try has the pin. An active slot is changed by its owner alone.
 *   <li><em>A cleanup waiter is not forgotten.</em> The owner makes the slot idle, then looks for
 *       PIN_COUNT_WAITER, and gives the pin back if it is set. The waiter sets the flag, then looks
 *       for idle slots, then at the pin count. All of these are sequentially consistent: if the
 *       owner does not see the flag, his store came before the flag was set, so the waiter sees the
 *       slot idle. A slot that he sees active becomes idle after the flag was set. The same holds
 *       when a slot is filled. A backend that fills its first slot joins the list of backends
 *       before.
 *   <li><em>Those who wait otherwise</em> (a drop; the hand that looks for a victim) take idle pins
 *       back whenever they meet a pinned buffer, each time they come by.
 *   <li><em>Uses.</em> A use of a page through an idle pin is not counted in its usage count, as a
 *       further pin of one backend never was. To the hand an idle pin is one use more: it takes the
 *       pin back and goes on.
 * </ul>
 *
 * <p>Takes no lock but its own monitor, for the list; {@link #takeBack} may be called under any
 * lock but a header lock. Allocates nothing.
 *
 * <p>Not final: tests come in between two steps, and put faults in. (Not in PostgreSQL.)
 */
class PinRetention {
    /** When a backend retains a pin. */
    enum When {
        /** The plain way; {@link LookupStyle#PARTITION_LOCK}. */
        NEVER,

        /** When it met others at the buffer's state word, or they did so a short time ago. */
        ON_CONTENTION,

        /** For tests. */
        ALWAYS
    }

    /** How many buffers are remembered as hot. A power of two; 64 bytes. */
    private static final int HOT = 16;

    private final BufferDescriptors descriptors;

    /** Those who wait for a cleanup lock. */
    private final WaitTable waits;

    private final When when;

    /**
     * Buffer + 1 of hot buffers, by the buffer's last bits; padded at both ends, as it is read at
     * each release and hardly ever written. A hint: written and read without order.
     */
    private final int[] hot = new int[3 * HOT];

    /** The backends that have retained a pin. The list is changed under our monitor. */
    private volatile RetainedPins first;

    PinRetention(BufferDescriptors descriptors, WaitTable waits, When when) {
        this.descriptors = descriptors;
        this.waits = waits;
        this.when = when;
    }

    When when() {
        return when;
    }

    /** For a backend. */
    RetainedPins pins() {
        return new RetainedPins(this, descriptors);
    }

    /** True if a pin of the buffer is to be retained without trying to give it back. */
    final boolean isWanted(int buffer) {
        return hot[HOT + (buffer & HOT - 1)] == buffer + 1 || when == When.ALWAYS;
    }

    /** Somebody met somebody else at the buffer's state word. */
    final void met(int buffer) {
        hot[HOT + (buffer & HOT - 1)] = buffer + 1;
    }

    /**
     * Takes back all idle pins of the buffer. The caller holds no header lock.
     *
     * @return how many
     */
    int takeBack(int buffer) {
        int taken = 0;
        for (RetainedPins pins = first; pins != null; pins = pins.next) {
            taken += pins.takeBack(buffer);
        }
        if (taken != 0 && hot[HOT + (buffer & HOT - 1)] == buffer + 1) {
            hot[HOT + (buffer & HOT - 1)] = 0;
        }
        return taken;
    }

    /** Takes back all idle pins of all buffers: the pool is being closed. */
    final void takeBackAll() {
        for (RetainedPins pins = first; pins != null; pins = pins.next) {
            pins.giveBackIdle();
        }
    }

    /**
     * Of {@code refcount} pins of the buffer, those that are not idle; each slot is looked at at
     * another moment, so it is exact only while nobody uses the buffer.
     */
    final int used(int buffer, int refcount) {
        int used = refcount;
        if (used != 0) {
            for (RetainedPins pins = first; pins != null; pins = pins.next) {
                used -= pins.idle(buffer);
            }
        }
        return Math.max(0, used);
    }

    /** Slots that name the buffer, idle or active. For the inspection. */
    final int slots(int buffer) {
        int slots = 0;
        for (RetainedPins pins = first; pins != null; pins = pins.next) {
            slots += pins.slots(buffer);
        }
        return slots;
    }

    /** Takes a pin away from the pin count. */
    void unpin(int buffer) {
        if (descriptors.unpin(buffer)) {
            waits.wake(buffer);
        }
    }

    /** The same unless others change the state word at this moment. @return true when it is gone */
    final boolean unpinUnlessContended(int buffer) {
        int outcome = descriptors.unpinUnlessContended(buffer);
        if (outcome == BufferDescriptors.LAST_BUT_WAITER) {
            waits.wake(buffer);
        }
        return outcome != BufferDescriptors.CONTENDED;
    }

    final synchronized void join(RetainedPins pins) {
        pins.next = first;
        first = pins;
    }

    /** Who walks the list now may still see these pins, and goes on to the rest from there. */
    final synchronized void leave(RetainedPins pins) {
        if (first == pins) {
            first = pins.next;
            return;
        }
        RetainedPins before = first;
        while (before.next != pins) {
            before = before.next;
        }
        before.next = pins.next;
    }
}
