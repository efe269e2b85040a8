package org.pgkernel.base;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.error.KernelException;

final class ControlFileProperties {
    private static ControlFile decode(byte[] bytes) {
        return ControlFile.decode(new UnsafeBuffer(bytes), 0, bytes.length, "pg_control");
    }

    private static byte[] encode(ControlFile control) {
        byte[] bytes = new byte[8192];
        control.encode(new UnsafeBuffer(bytes), 0);
        return bytes;
    }

    /** Every field of the cluster's state at random; what 15 was built with stays. */
    private static ControlFile random(long seed) {
        Random random = new Random(seed);
        ControlFile control = new ControlFile();
        control.setSystemIdentifier(random.nextLong());
        control.setState(DbState.of(random.nextInt(7)));
        control.setTime(random.nextLong());
        control.setCheckPoint(random.nextLong());
        control.setUnloggedLsn(random.nextLong());
        control.setMinRecoveryPoint(random.nextLong());
        control.setMinRecoveryPointTli(random.nextInt());
        control.setBackupStartPoint(random.nextLong());
        control.setBackupEndPoint(random.nextLong());
        control.setBackupEndRequired(random.nextBoolean());
        control.setWalLevel(random.nextInt(3));
        control.setWalLogHints(random.nextBoolean());
        control.setMaxConnections(random.nextInt());
        control.setMaxWorkerProcesses(random.nextInt());
        control.setMaxWalSenders(random.nextInt());
        control.setMaxPreparedXacts(random.nextInt());
        control.setMaxLocksPerXact(random.nextInt());
        control.setTrackCommitTimestamp(random.nextBoolean());
        control.setXlogSegSize(1 << 20 + random.nextInt(11));
        control.setDataChecksumVersion(random.nextInt(2));
        byte[] nonce = new byte[32];
        random.nextBytes(nonce);
        control.setMockAuthenticationNonce(nonce);
        byte[] checkPoint = new byte[CheckPointRecord.SIZE];
        random.nextBytes(checkPoint);
        control.setCheckPointCopy(new UnsafeBuffer(checkPoint), 0);
        return control;
    }

    @Property(tries = 200)
    void whatIsEncodedIsDecoded(@ForAll long seed) {
        ControlFile control = random(seed);
        byte[] bytes = encode(control);
        ControlFile again = decode(bytes);
        assertEquals(java.util.List.of(), control.describeDifferences(again, false));
        assertArrayEquals(bytes, encode(again));
    }

    // BASE-8
    @Property(tries = 500)
    void anySingleChangedByteIsRefused(
            @ForAll long seed,
            @ForAll @IntRange(max = 291) int at,
            @ForAll @IntRange(min = 1, max = 255) int flip) {
        byte[] bytes = encode(random(seed));
        bytes[at] ^= (byte) flip;
        assertThrows(KernelException.class, () -> decode(bytes));
    }

    @Example
    void everySingleByteOfARealFileCounts() {
        for (int at = 0; at < 292; at++) {
            byte[] bytes = RealControlFile.bytes();
            bytes[at] ^= 0x10;
            KernelException e =
                    assertThrows(KernelException.class, () -> decode(bytes), "byte " + at);
            assertTrue(e.getMessage().endsWith("file=pg_control"), e.getMessage());
        }
    }

    @Property(tries = 500)
    void anyBytesAreReadOrRefused(@ForAll byte[] noise, @ForAll @IntRange(max = 400) int at) {
        byte[] bytes = RealControlFile.bytes();
        System.arraycopy(noise, 0, bytes, at, Math.min(noise.length, bytes.length - at));
        UnsafeBuffer image = new UnsafeBuffer(bytes);
        image.putInt(288, Crc32c.of(image, 0, 288));
        try {
            decode(bytes);
        } catch (KernelException expected) {
            assertTrue(expected.getMessage().endsWith("file=pg_control"), expected.getMessage());
        }
    }

    @Property(tries = 200)
    void exactlyTheChangedFieldsAreNamed(@ForAll long seed, @ForAll @IntRange(max = 40) int index) {
        ControlFile left = random(seed);
        ControlFile right = new ControlFile();
        right.copyFrom(left);
        ControlField field = ControlField.ALL[index];
        boolean flag = field.kind() == ControlField.Kind.BOOL;
        byte old = left.image().getByte(field.offset());
        right.image().putByte(field.offset(), (byte) (flag ? (old == 0 ? 1 : 0) : old ^ 1));
        var differences = left.describeDifferences(right, false);
        assertEquals(1, differences.size());
        assertEquals(field.name(), differences.getFirst().field());
        assertEquals(field.isTime() ? 0 : 1, left.describeDifferences(right, true).size());
    }

    @Example
    void fieldsCoverTheFileButForUnusedBytes() {
        int[] size = {4, 8, 8, 1, 8, 8, 4, 8, 32};
        byte[] covered = new byte[292];
        for (ControlField field : ControlField.ALL) {
            int bytes = size[field.kind().ordinal()];
            Arrays.fill(
                    covered,
                    field.offset(),
                    field.offset() + bytes,
                    (byte) (covered[field.offset()] + 1));
        }
        int unused = 0;
        for (int at = 0; at < 288; at++) {
            assertTrue(covered[at] <= 1, "two fields at " + at);
            unused += covered[at] == 0 ? 1 : 0;
        }
        // 4 after state, 7 + 4 + 4 in the checkpoint, 4 after the timeline, 3 + 3 + 3 + 3 after
        // flags.
        assertEquals(35, unused);
    }
}
