package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.util.BitSet;
import java.util.Random;
import org.junit.jupiter.api.Test;

class FingerprintsTest {
    private static final int NBUFFERS = 5000; // not a multiple of a block

    private final NativeArrays memory = new NativeArrays();
    private final Random random = new Random(7);

    /**
     * The scan by vectors and sets finds what a look at each would find, at any distance from a
     * block's or word's edge.
     */
    @Test
    void theScanMissesNothingAndInventsNothing() {
        for (int bits : new int[] {1, 2, 4, 10, 16}) {
            Fingerprints fingerprints = new Fingerprints(memory, NBUFFERS, bits);
            for (int round = 0; round < 40; round++) {
                int relations = 1 + random.nextInt(40);
                int[] victims = new int[relations];
                int count = 0;
                long[] members = new long[1024];
                for (int i = 0; i < relations; i++) {
                    int fingerprint = fingerprints.of(1663, 5, i);
                    if ((members[fingerprint >>> 6] >>> fingerprint & 1) == 0) {
                        members[fingerprint >>> 6] |= 1L << fingerprint;
                        victims[count++] = fingerprint;
                    }
                }
                int rare = 1 + random.nextInt(3000);
                for (int buffer = 0; buffer < NBUFFERS; buffer++) {
                    fingerprints.clear(buffer);
                    if (random.nextInt(rare) == 0) {
                        fingerprints.set(buffer, 1663, 5, random.nextInt(60));
                    } else if (random.nextBoolean()) {
                        fingerprints.set(buffer, 1663, 6, 100 + random.nextInt(1000));
                    }
                }
                int end = random.nextInt(5) == 0 ? random.nextInt(NBUFFERS) : NBUFFERS;
                BitSet one = new BitSet();
                for (int b = fingerprints.next(0, end, victims[0]);
                        b < end;
                        b = fingerprints.next(b + 1, end, victims[0])) {
                    one.set(b);
                }
                BitSet any = new BitSet();
                for (int b = fingerprints.nextOfSet(0, end, members, victims, count);
                        b < end;
                        b = fingerprints.nextOfSet(b + 1, end, members, victims, count)) {
                    any.set(b);
                }
                BitSet expectedOne = new BitSet();
                BitSet expectedAny = new BitSet();
                for (int b = 0; b < end; b++) {
                    int fingerprint = fingerprints.get(b);
                    expectedOne.set(b, fingerprint == victims[0]);
                    expectedAny.set(
                            b,
                            fingerprint != 0
                                    && (members[fingerprint >>> 6] >>> fingerprint & 1) != 0);
                }
                assertEquals(expectedOne, one);
                assertEquals(expectedAny, any);
            }
        }
        memory.release();
    }

    @Test
    void aBufferWithoutAPageMatchesNothing() {
        Fingerprints fingerprints = new Fingerprints(memory, NBUFFERS, 16);
        for (int rel = 0; rel < 200_000; rel++) {
            int fingerprint = fingerprints.of(1663, 5, rel);
            assertTrue(fingerprint > 0 && fingerprint < 1 << 16);
        }
        assertEquals(NBUFFERS, fingerprints.next(0, NBUFFERS, 1));
        memory.release();
    }
}
