package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;

import java.util.Arrays;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.DamagedDataException;

/** Whatever a record or a page says, redo changes the page or refuses it whole (HEAP-1, HEAP-2). */
final class HeapPageDamageProperties {
    private final byte[] bytes = new byte[Page.SIZE];
    private final UnsafeBuffer page = new UnsafeBuffer(bytes);
    private final HeapPage pages = new HeapPage();

    @Property(tries = 3000)
    void aRefusedRecordLeavesAllButTheHoleAsItWas(@ForAll long seed) {
        Random random = new Random(seed);
        fillPage(random);
        if (random.nextInt(3) == 0) {
            damagePage(random);
        }
        byte[] before = bytes.clone();
        int lower = Page.lower(page);
        int upper = Page.upper(page);
        try {
            applyRandomRecord(random);
        } catch (DamagedDataException e) {
            if (lower <= upper && upper <= Page.SIZE) {
                assertArrayEquals(
                        Arrays.copyOf(before, lower), Arrays.copyOf(bytes, lower), e.getMessage());
                assertArrayEquals(
                        Arrays.copyOfRange(before, upper, Page.SIZE),
                        Arrays.copyOfRange(bytes, upper, Page.SIZE),
                        e.getMessage());
            } else {
                assertArrayEquals(before, bytes);
            }
        }
    }

    private void fillPage(Random random) {
        Page.init(page, 0);
        int count = random.nextInt(40);
        for (int i = 0; i < count; i++) {
            byte[] tuple = new byte[HeapTupleHeader.SIZE + 1 + random.nextInt(300)];
            random.nextBytes(tuple);
            tuple[HeapTupleHeader.T_HOFF] = 24;
            PageItems.addItem(page, new UnsafeBuffer(tuple), 0, tuple.length, 0, false, true);
        }
        for (int i = 1; i <= Page.maxOffsetNumber(page); i++) {
            if (random.nextInt(5) == 0) {
                Page.setItemId(
                        page, i, random.nextBoolean() ? 0 : Page.packItemId(0, Page.LP_DEAD, 0));
            }
        }
    }

    private void damagePage(Random random) {
        for (int i = random.nextInt(3); i >= 0; i--) {
            int region = random.nextInt(3);
            int at =
                    region == 0
                            ? 10 + random.nextInt(10)
                            : region == 1 ? 24 + random.nextInt(160) : random.nextInt(Page.SIZE);
            bytes[at] = (byte) random.nextInt();
        }
    }

    private void applyRandomRecord(Random random) {
        UnsafeBuffer main = randomPart(random, 64);
        UnsafeBuffer data = randomPart(random, random.nextInt(4) == 0 ? 600 : 40);
        int length = data.capacity();
        // Small numbers where line pointers are, so that some records get past the first check.
        switch (random.nextInt(9)) {
            case 0 -> pages.insert(page, small(main, random, 0), data, Math.max(length, 5), 9, 1);
            case 1 -> HeapPage.delete(page, small(main, random, 4), 9, 1);
            case 2 -> {
                small(small(main, random, 4), random, 12);
                if (length >= 9) {
                    HeapPage.checkOld(page, main);
                    pages.updateNew(
                            page,
                            main,
                            small(small(data, random, 0), random, 2),
                            length,
                            9,
                            1,
                            true);
                    HeapPage.updateOld(page, main, 9, 1, random.nextBoolean());
                }
            }
            case 3 -> HeapPage.lock(page, small(main, random, 4), 1);
            case 4 -> HeapPage.inplace(page, small(main, random, 0), data, length);
            case 5 -> {
                smallAll(data, random);
                pages.prune(page, small(small(main, random, 4), random, 6), data, length);
            }
            case 6 -> {
                smallAll(data, random);
                HeapPage.vacuum(page, small(main, random, 0), data, length);
            }
            case 7 -> {
                for (int at = 4; at + 2 <= length; at += 12) {
                    small(data, random, at);
                }
                HeapPage.freeze(page, small(main, random, 4), data, length);
            }
            default -> {
                smallAll(data, random);
                for (int at = 2; at < 64; at += 2) {
                    small(main, random, at);
                }
                pages.multiInsert(page, main, 64, data, length, 9, 1, random.nextBoolean());
            }
        }
    }

    private static UnsafeBuffer randomPart(Random random, int most) {
        byte[] part = new byte[most == 64 ? 64 : 5 + random.nextInt(most)];
        random.nextBytes(part);
        return new UnsafeBuffer(part);
    }

    private static UnsafeBuffer small(UnsafeBuffer part, Random random, int at) {
        if (random.nextInt(12) != 0) {
            part.putShort(at, (short) random.nextInt(24));
        }
        return part;
    }

    private static void smallAll(UnsafeBuffer part, Random random) {
        for (int at = 0; at + 2 <= part.capacity(); at += 2) {
            small(part, random, at);
        }
    }
}
