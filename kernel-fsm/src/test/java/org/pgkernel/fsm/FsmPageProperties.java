package org.pgkernel.fsm;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;

/** The tree of a free space map page always answers for its leaves (FSM-1, FSM-2). */
final class FsmPageProperties {
    private final UnsafeBuffer page = new UnsafeBuffer(new byte[Page.SIZE]);

    @Property(tries = 60)
    void everyInnerNodeIsTheGreaterOfItsChildren(
            @ForAll long seed, @ForAll @IntRange(min = 1, max = 300) int steps) {
        Random random = new Random(seed);
        Page.init(page, 0);
        int[] model = new int[FsmPage.SLOTS];
        for (int i = 0; i < steps; i++) {
            if (random.nextInt(40) == 0) {
                int first = random.nextInt(FsmPage.SLOTS);
                boolean changed = false;
                for (int s = first; s < model.length; s++) {
                    changed |= model[s] != 0;
                    model[s] = 0;
                }
                assertEquals(changed, FsmPage.truncateAvail(page, first));
            } else {
                int slot =
                        random.nextBoolean()
                                ? random.nextInt(FsmPage.SLOTS)
                                : FsmPage.SLOTS - 1 - random.nextInt(8);
                int category = random.nextInt(256);
                assertEquals(model[slot] != category, FsmPage.setAvail(page, slot, category));
                model[slot] = category;
                assertEquals(category, FsmPage.avail(page, slot));
            }
        }
        checkTree(model);
    }

    @Property(tries = 40)
    void aTornTreeIsRebuiltWhenAValueShowsIt(@ForAll long seed) {
        Random random = new Random(seed);
        Page.init(page, 0);
        int[] model = new int[FsmPage.SLOTS];
        for (int i = 0; i < 50; i++) {
            int slot = random.nextInt(FsmPage.SLOTS);
            model[slot] = 1 + random.nextInt(200);
            FsmPage.setAvail(page, slot, model[slot]);
        }
        for (int node = 0; node < 2000; node++) {
            page.putByte(FsmPage.NODES_OFFSET + node, (byte) 0);
        }
        int slot = random.nextInt(FsmPage.SLOTS);
        model[slot] = 255;
        FsmPage.setAvail(page, slot, 255);
        assertEquals(255, FsmPage.maxAvail(page));
        FsmPage.rebuild(page);
        checkTree(model);
    }

    private void checkTree(int[] model) {
        int max = 0;
        for (int slot = 0; slot < model.length; slot++) {
            assertEquals(model[slot], FsmPage.avail(page, slot));
            max = Math.max(max, model[slot]);
        }
        assertEquals(max, FsmPage.maxAvail(page), "the root is the greatest leaf");
        for (int node = 0; node < FsmPage.INNER_NODES; node++) {
            int left = child(2 * node + 1);
            int right = child(2 * node + 2);
            assertEquals(Math.max(left, right), child(node), "node " + node);
        }
    }

    private int child(int node) {
        return node < FsmPage.NODES ? page.getByte(FsmPage.NODES_OFFSET + node) & 0xFF : 0;
    }
}
