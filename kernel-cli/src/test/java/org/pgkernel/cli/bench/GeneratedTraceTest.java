package org.pgkernel.cli.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class GeneratedTraceTest {
    private static int[] uses(Trace trace) {
        int[] uses = new int[trace.length()];
        Arrays.setAll(uses, trace::use);
        return uses;
    }

    private static boolean sameUses(Trace one, Trace other) {
        return Arrays.equals(uses(one), uses(other));
    }

    @ParameterizedTest
    @EnumSource(GeneratedTrace.class)
    void theSameSeedMakesTheSameTraceAndAnotherOneAnother(GeneratedTrace generated) {
        Trace trace = generated.make(1000, 10_000, 3);
        assertTrue(sameUses(trace, generated.make(1000, 10_000, 3)));
        assertEquals(
                generated == GeneratedTrace.LOOP, // it has nothing random in it
                sameUses(trace, generated.make(1000, 10_000, 4)));
    }

    @ParameterizedTest
    @EnumSource(GeneratedTrace.class)
    void everyPageHasAName(GeneratedTrace generated) {
        for (int pages : new int[] {100, 777, 5000}) {
            Trace trace = generated.make(pages, 20_000, 1);
            for (int i = 0; i < trace.length(); i++) {
                trace.page(trace.use(i));
            }
            assertTrue(trace.footprint() <= trace.numbers());
            assertTrue(trace.numbers() <= pages + pages / 10, trace.numbers() + " pages");
        }
    }

    @Test
    void popularityFallsAsZipfSays() {
        Trace trace = GeneratedTrace.ZIPF_1_0.make(1000, 200_000, 5);
        int[] counts = new int[trace.numbers()];
        for (int i = 0; i < trace.length(); i++) {
            counts[trace.use(i)]++;
        }
        Arrays.sort(counts);
        double first = counts[counts.length - 1];
        assertEquals(1.0 / 2, counts[counts.length - 2] / first, 0.05);
        assertEquals(1.0 / 10, counts[counts.length - 10] / first, 0.02);
        assertEquals(1.0 / 100, counts[counts.length - 100] / first, 0.005);
    }

    @Test
    void aScanBeginsWhereItsFirstPageIsUsed() {
        Trace trace = GeneratedTrace.SCAN_RING.make(1000, 10_000, 5);
        int begins = 0;
        for (int i = 0; i < trace.length(); i++) {
            assertEquals(i % 4 == 3, trace.scan(i) != Trace.NO_SCAN);
            if (trace.scan(i) == Trace.SCAN_BEGINS) {
                assertEquals(0, trace.page(trace.use(i)).block());
                begins++;
            }
        }
        assertEquals(5, begins); // 2,500 uses of 500 pages
        assertTrue(sameUses(trace, GeneratedTrace.SCAN.make(1000, 10_000, 5)));
    }
}
