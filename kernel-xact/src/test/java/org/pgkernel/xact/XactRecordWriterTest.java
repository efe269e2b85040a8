package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.pgkernel.wal.WalRecordBuilder;

/** Records byte for byte as xact.h lays them out, and as redo reads them (XACT-14). */
class XactRecordWriterTest {
    private static final int BODY = 26;

    private final XactRecordWriter writer = new XactRecordWriter();
    private final PendingDrops drops = new PendingDrops();
    private final UnsafeBuffer subxids = new UnsafeBuffer(new byte[12]);
    private final ExpandableArrayBuffer out = new ExpandableArrayBuffer();

    private byte[] encode(WalRecordBuilder record, int xid, int info) {
        int length = record.encode(out, 0, 0);
        assertEquals(xid, out.getInt(4));
        assertEquals(info, out.getByte(16) & 0xFF);
        assertEquals(1, out.getByte(17), "resource manager Transaction");
        assertEquals(0xFF, out.getByte(24) & 0xFF, "short main data");
        byte[] body = new byte[length - BODY];
        out.getBytes(BODY, body);
        assertEquals(body.length, out.getByte(25) & 0xFF);
        return body;
    }

    private static byte[] bytes(long time, int... words) {
        ByteBuffer bytes = ByteBuffer.allocate(8 + words.length * 4).order(ByteOrder.LITTLE_ENDIAN);
        bytes.putLong(time);
        Arrays.stream(words).forEach(bytes::putInt);
        return bytes.array();
    }

    @Test
    void aPlainCommitOrAbortIsItsTime() {
        assertArrayEquals(
                bytes(77), encode(writer.end(true, 700, 77, 0, subxids, 0, 0, drops, 0), 700, 0));
        assertArrayEquals(
                bytes(78),
                encode(writer.end(false, 701, 78, 0, subxids, 0, 0, drops, 0), 701, 0x20));
    }

    @Test
    void subtransactionsAndDroppedRelationsFollowInPostgresOrder() {
        subxids.putInt(4, 701);
        subxids.putInt(8, 703);
        drops.add(1663, 5, 16384, 0, true);
        drops.add(1663, 5, 16385, 0, false);
        drops.add(1663, 5, 16386, 0, true);
        int force = XactRecord.FORCE_SYNC_COMMIT;
        byte[] body = encode(writer.end(true, 700, 77, force, subxids, 4, 2, drops, 0), 700, 0x81);
        int xinfo = force | 0x2 | 0x4;
        assertArrayEquals(bytes(77, xinfo, 2, 701, 703, 2, 1663, 5, 16386, 1663, 5, 16384), body);
        XactRecord parsed = new XactRecord();
        assertNull(parsed.parse(0x81, new UnsafeBuffer(body), body.length, true));
        assertEquals(2, parsed.subxacts);
        assertEquals(2, parsed.relations);
        assertArrayEquals(
                bytes(78, 0x4, 1, 1663, 5, 16385),
                encode(writer.end(false, 700, 78, 0, subxids, 0, 0, drops, 0), 700, 0xA1));
    }

    @Test
    void anAssignmentNamesTheTopTransactionAndItsChildren() {
        byte[] body = encode(writer.assignment(705, 700, new int[] {701, 705, 9}, 2), 705, 0x50);
        ByteBuffer expected = ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN);
        expected.putInt(700).putInt(2).putInt(701).putInt(705);
        assertArrayEquals(expected.array(), body);
    }
}
