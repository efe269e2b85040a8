package org.pgkernel.base;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.LongRange;

final class IdentifierProperties {
    @Property
    void lsnIsReadBackAsPrinted(@ForAll long lsn) {
        String text = Lsn.format(lsn);
        assertEquals(lsn, Lsn.parse(text));
        assertEquals(lsn, Lsn.parse(text.toLowerCase()));
        assertEquals(String.format("%X/%X", lsn >>> 32, lsn & 0xFFFFFFFFL), text);
    }

    @Property
    void anyTextIsAnLsnOrRefused(@ForAll String text) {
        try {
            Lsn.parse(text);
            assertTrue(text.matches("[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}"), text);
        } catch (IllegalArgumentException expected) {
            assertFalse(text.matches("[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}"), text);
        }
    }

    @Example
    void textThatIsNearlyAnLsnIsRefused() {
        for (String text :
                new String[] {
                    "",
                    "/",
                    "0/",
                    "/0",
                    "123456789/0",
                    "0/123456789",
                    "+1/0",
                    "0/+1",
                    "-1/0",
                    "0/-1",
                    "0/1/2",
                    "x/0"
                }) {
            assertThrows(IllegalArgumentException.class, () -> Lsn.parse(text), text);
        }
    }

    @Property
    void lsnOrderIsUnsigned(@ForAll long a, @ForAll long b) {
        assertEquals(Long.compareUnsigned(a, b) < 0, Lsn.before(a, b));
        assertEquals(!Lsn.before(a, b), Lsn.atOrAfter(a, b));
        assertEquals(Lsn.before(a, b) ? b : a, Lsn.max(a, b));
    }

    /**
     * The definition on a circle: {@code b} lies ahead of {@code a} by 1 .. 2^31 - 1 steps modulo
     * 2^32.
     */
    @Property
    void normalXidsAreOrderedOnACircle(
            @ForAll int a, @ForAll @LongRange(min = 1, max = 0x7FFFFFFFL) long ahead) {
        int b = (int) (a + ahead);
        if (TransactionId.isNormal(a) && TransactionId.isNormal(b)) {
            assertTrue(TransactionId.precedes(a, b));
            assertFalse(TransactionId.precedes(b, a));
            assertTrue(TransactionId.follows(b, a));
            assertTrue(TransactionId.precedesOrEquals(a, b));
            assertTrue(TransactionId.followsOrEquals(a, a));
        }
    }

    @Property
    void specialXidsPrecedeAllNormalOnes(@ForAll @IntRange(max = 2) int special, @ForAll int xid) {
        if (TransactionId.isNormal(xid)) {
            assertTrue(TransactionId.precedes(special, xid));
            assertFalse(TransactionId.precedes(xid, special));
        }
    }

    @Property
    void advanceAndRetreatUndoEachOtherAndSkipSpecialXids(@ForAll int xid) {
        if (TransactionId.isNormal(xid)) {
            assertTrue(TransactionId.isNormal(TransactionId.advance(xid)));
            assertEquals(xid, TransactionId.retreat(TransactionId.advance(xid)));
            assertEquals(xid, TransactionId.advance(TransactionId.retreat(xid)));
        }
    }

    @Example
    void xidsWrapBehindTheSpecialOnes() {
        assertEquals(3, TransactionId.advance(-1));
        assertEquals(-1, TransactionId.retreat(3));
    }

    @Property
    void fullXidIsAdvancedJustPastAnXidAhead(
            @ForAll @LongRange(min = 3, max = 1L << 40) long next,
            @ForAll @IntRange(max = 0x7FFFFFFE) int ahead) {
        if (!TransactionId.isNormal(TransactionId.xidOf(next))
                || !TransactionId.isNormal(TransactionId.xidOf(next + ahead))) {
            return;
        }
        long xid = next + ahead;
        long expected = TransactionId.isNormal(TransactionId.xidOf(xid + 1)) ? xid + 1 : xid + 4;
        assertEquals(expected, TransactionId.advancePast(next, TransactionId.xidOf(xid)));
        assertEquals(
                expected,
                TransactionId.advancePast(expected, TransactionId.xidOf(xid)),
                "once past it, nothing changes");
    }

    @Property
    void tagMatchesItselfAndNoNeighbour(
            @ForAll int spc,
            @ForAll int db,
            @ForAll int rel,
            @ForAll @IntRange(max = 3) int fork,
            @ForAll int block) {
        var buffer = new org.agrona.concurrent.UnsafeBuffer(new byte[BufferTag.LENGTH + 4]);
        BufferTag.put(buffer, 4, spc, db, rel, fork, block);
        assertTrue(BufferTag.matches(buffer, 4, spc, db, rel, fork, block));
        assertFalse(BufferTag.matches(buffer, 4, spc + 1, db, rel, fork, block));
        assertFalse(BufferTag.matches(buffer, 4, spc, db + 1, rel, fork, block));
        assertFalse(BufferTag.matches(buffer, 4, spc, db, rel + 1, fork, block));
        assertFalse(BufferTag.matches(buffer, 4, spc, db, rel, fork + 1, block));
        assertFalse(BufferTag.matches(buffer, 4, spc, db, rel, fork, block + 1));
    }

    @Property
    void pageKeepsItsLsn(@ForAll long lsn) {
        var page = new org.agrona.concurrent.UnsafeBuffer(new byte[Page.SIZE]);
        Page.setLsn(page, lsn);
        assertEquals(lsn, Page.lsn(page));
        assertEquals((int) (lsn >>> 32), page.getInt(0), "the upper half comes first");
    }
}
