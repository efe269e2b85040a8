package org.pgkernel.base;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Whatever sequence of changes a page sees, its items keep their bytes and its pointers their
 * order.
 */
final class PageItemsProperties {
    private static final byte[] DEAD = {};

    private final byte[] bytes = new byte[Page.SIZE];
    private final UnsafeBuffer page = new UnsafeBuffer(bytes);
    private final PageItems items = new PageItems();

    /** By line pointer from 1: null unused, DEAD without storage, else the item. */
    private final List<byte[]> model = new ArrayList<>();

    private Random random;

    @Property(tries = 150)
    void heapItemsSurviveAddsPrunesAndRepairs(
            @ForAll long seed, @ForAll @IntRange(min = 20, max = 200) int steps) {
        begin(seed, 0);
        for (int i = 0; i < steps; i++) {
            switch (random.nextInt(8)) {
                case 0, 1, 2, 3, 4 -> addHeapItem();
                case 5 -> kill(null);
                case 6 -> kill(DEAD);
                default -> {
                    int rounds = random.nextInt(model.size() + 1);
                    for (int k = 0; k < rounds; k++) {
                        kill(random.nextInt(4) == 0 ? DEAD : null);
                    }
                    items.repairFragmentation(page);
                    while (!model.isEmpty() && model.getLast() == null) {
                        model.removeLast();
                    }
                    checkCompact();
                    assertEquals(
                            model.contains(null), (Page.flags(page) & Page.PD_HAS_FREE_LINES) != 0);
                }
            }
            check();
        }
    }

    @Property(tries = 150)
    void indexItemsSurviveInsertsDeletesAndOverwrites(
            @ForAll long seed, @ForAll @IntRange(min = 20, max = 200) int steps) {
        begin(seed, 16);
        for (int i = 0; i < steps; i++) {
            switch (random.nextInt(10)) {
                case 0, 1, 2, 3, 4, 5 -> insertIndexItem();
                case 6 -> {
                    if (!model.isEmpty()) {
                        int at = random.nextInt(model.size());
                        PageItems.indexTupleDelete(page, at + 1);
                        model.remove(at);
                    }
                }
                case 7 -> multiDelete();
                default -> overwrite();
            }
            check();
            checkCompact();
        }
    }

    private void begin(long seed, int special) {
        random = new Random(seed);
        random.nextBytes(bytes);
        model.clear();
        Page.init(page, special);
    }

    private byte[] randomItem() {
        byte[] item = new byte[1 + random.nextInt(random.nextInt(10) == 0 ? 700 : 60)];
        random.nextBytes(item);
        return item;
    }

    private void addHeapItem() {
        byte[] item = randomItem();
        int free = model.indexOf(null) + 1;
        boolean chosen = random.nextBoolean();
        int at =
                PageItems.addItem(
                        page,
                        new UnsafeBuffer(item),
                        0,
                        item.length,
                        chosen ? free : 0,
                        true,
                        true);
        if (at == 0) {
            return;
        }
        if (at > model.size()) {
            model.add(item);
        } else {
            assertEquals(null, model.get(at - 1), "only an unused line pointer is taken over");
            model.set(at - 1, item);
        }
    }

    private void kill(byte[] state) {
        if (model.isEmpty()) {
            return;
        }
        int at = random.nextInt(model.size());
        Page.setItemId(page, at + 1, state == null ? 0 : Page.packItemId(0, Page.LP_DEAD, 0));
        model.set(at, state);
    }

    private void insertIndexItem() {
        byte[] item = randomItem();
        int at = 1 + random.nextInt(model.size() + 1);
        int got = PageItems.addItem(page, new UnsafeBuffer(item), 0, item.length, at, false, false);
        assertTrue(got == 0 || got == at);
        if (got != 0) {
            model.add(at - 1, item);
        }
    }

    private void multiDelete() {
        int[] doomed = new int[model.size()];
        int count = 0;
        int share = 1 + random.nextInt(5);
        for (int i = 0; i < model.size(); i++) {
            if (random.nextInt(share) == 0) {
                doomed[count++] = i + 1;
            }
        }
        items.indexMultiDelete(page, doomed, count);
        for (int i = count - 1; i >= 0; i--) {
            model.remove(doomed[i] - 1);
        }
    }

    private void overwrite() {
        if (model.isEmpty()) {
            return;
        }
        byte[] item = randomItem();
        int at = random.nextInt(model.size());
        if (PageItems.indexTupleOverwrite(page, at + 1, new UnsafeBuffer(item), 0, item.length)) {
            model.set(at, item);
        }
    }

    private void check() {
        PageItems.checkPointers(page, true);
        assertEquals(model.size(), Page.maxOffsetNumber(page));
        boolean[] taken = new boolean[Page.SIZE];
        for (int i = 0; i < model.size(); i++) {
            int itemId = Page.itemId(page, i + 1);
            byte[] expected = model.get(i);
            if (expected == null) {
                assertEquals(0, itemId);
                continue;
            }
            assertEquals(expected.length, Page.lpLength(itemId));
            if (expected == DEAD) {
                continue;
            }
            byte[] actual = new byte[expected.length];
            page.getBytes(Page.lpOffset(itemId), actual);
            assertArrayEquals(expected, actual);
            for (int b = 0; b < expected.length; b++) {
                assertTrue(!taken[Page.lpOffset(itemId) + b], "items overlap");
                taken[Page.lpOffset(itemId) + b] = true;
            }
        }
    }

    private void checkCompact() {
        int total = 0;
        for (byte[] item : model) {
            total += item == null ? 0 : Page.maxAlign(item.length);
        }
        assertEquals(Page.special(page) - total, Page.upper(page));
    }
}
