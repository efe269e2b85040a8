package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.agrona.concurrent.UnsafeBuffer;

class XactRecordProperties {
    private final XactRecord record = new XactRecord();

    /** A record with every part, the counts as given. */
    private static byte[] whole(int subxacts, int relations, int stats, int invals) {
        ByteBuffer out = ByteBuffer.allocate(4096).order(ByteOrder.LITTLE_ENDIAN);
        out.putLong(123456789L);
        out.putInt(
                XactRecord.HAS_DBINFO
                        | XactRecord.HAS_SUBXACTS
                        | XactRecord.HAS_RELFILENODES
                        | XactRecord.HAS_DROPPED_STATS
                        | XactRecord.HAS_INVALS
                        | XactRecord.HAS_TWOPHASE
                        | XactRecord.HAS_GID
                        | XactRecord.HAS_ORIGIN
                        | XactRecord.FORCE_SYNC_COMMIT);
        out.putInt(5).putInt(1663);
        out.putInt(subxacts);
        for (int i = 0; i < subxacts; i++) {
            out.putInt(1000 + i);
        }
        out.putInt(relations);
        for (int i = 0; i < relations; i++) {
            out.putInt(1663).putInt(5).putInt(16384 + i);
        }
        out.putInt(stats);
        for (int i = 0; i < stats; i++) {
            out.putInt(2).putInt(5).putInt(16384 + i);
        }
        out.putInt(invals);
        out.position(out.position() + invals * 16);
        out.putInt(777);
        out.put(new byte[] {'g', 'i', 'd', 0});
        out.putLong(0x1000).putLong(99);
        byte[] bytes = new byte[out.position()];
        out.flip().get(bytes);
        return bytes;
    }

    @Property
    void everyPartIsFound(
            @ForAll @IntRange(min = 0, max = 20) int subxacts,
            @ForAll @IntRange(min = 0, max = 20) int relations,
            @ForAll @IntRange(min = 0, max = 9) int stats,
            @ForAll @IntRange(min = 0, max = 9) int invals) {
        byte[] bytes = whole(subxacts, relations, stats, invals);
        UnsafeBuffer data = new UnsafeBuffer(bytes);
        assertNull(record.parse(XactRecord.HAS_INFO, data, bytes.length, true));
        assertEquals(123456789L, record.time);
        assertEquals(5, record.database);
        assertEquals(1663, record.tablespace);
        assertEquals(subxacts, record.subxacts);
        assertEquals(relations, record.relations);
        assertEquals(stats, record.stats);
        assertEquals(invals, record.invalidations);
        if (subxacts > 0) {
            assertEquals(
                    1000 + subxacts - 1, data.getInt(record.subxactsOffset + (subxacts - 1) * 4));
        }
        if (relations > 0) {
            assertEquals(
                    16384 + relations - 1,
                    data.getInt(record.relationsOffset + (relations - 1) * 12 + 8));
        }
        assertEquals(777, record.twophaseXid);
        assertEquals(3, record.gidLength);
        assertEquals(0x1000, record.originLsn);
        assertEquals(99, record.originTime);
        assertTrue(record.has(XactRecord.FORCE_SYNC_COMMIT));
    }

    @Property
    void aRecordCutShortIsToldNotRead(
            @ForAll @IntRange(min = 0, max = 5) int subxacts,
            @ForAll @IntRange(min = 0, max = 5) int relations,
            @ForAll @IntRange(min = 1, max = 300) int cut) {
        byte[] bytes = whole(subxacts, relations, 1, 1);
        int length = Math.max(0, bytes.length - cut);
        byte[] shorter = java.util.Arrays.copyOf(bytes, length);
        assertNotNull(record.parse(XactRecord.HAS_INFO, new UnsafeBuffer(shorter), length, true));
    }

    @Property
    void noBytesMakeItReadPastTheEnd(
            @ForAll @Size(max = 120) byte[] bytes,
            @ForAll boolean hasInfo,
            @ForAll boolean isCommit) {
        UnsafeBuffer data = new UnsafeBuffer(bytes);
        String problem =
                record.parse(hasInfo ? XactRecord.HAS_INFO : 0, data, bytes.length, isCommit);
        if (problem == null) {
            assertTrue(
                    record.subxactsOffset + record.subxacts * 4 <= bytes.length
                            || record.subxacts == 0);
            assertTrue(
                    record.relationsOffset + record.relations * 12 <= bytes.length
                            || record.relations == 0);
        }
    }

    @Property(tries = 1)
    void aPlainCommitIsItsTimeOnly() {
        UnsafeBuffer data = new UnsafeBuffer(new byte[8]);
        data.putLong(0, 42);
        record.parse(
                XactRecord.HAS_INFO,
                new UnsafeBuffer(whole(3, 3, 3, 3)),
                whole(3, 3, 3, 3).length,
                true);
        assertNull(record.parse(0, data, 8, true));
        assertEquals(42, record.time);
        assertEquals(0, record.subxacts, "nothing is left of the record before");
        assertEquals(0, record.relations);
        assertEquals(0, record.xinfo);
    }
}
