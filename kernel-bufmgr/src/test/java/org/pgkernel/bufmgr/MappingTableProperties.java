package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;
import static org.pgkernel.bufmgr.BufferState.refcount;
import static org.pgkernel.bufmgr.LookupParts.collidingBlocks;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

/** The mapping table beside a HashMap from blocks to buffers, by either lookup. */
class MappingTableProperties {
    /** A step: block 0 to 23, and what to do with it. */
    @Property(tries = 600)
    void mapsLikeAHashMap(
            @ForAll LookupStyle style,
            @ForAll @Size(max = 400) List<@IntRange(min = 0, max = 24 * 4 - 1) Integer> steps) {
        try (LookupParts p = new LookupParts(16, style)) {
            int[] blocks = collidingBlocks(12);
            Map<Integer, Integer> model = new HashMap<>();
            int[] pins = new int[16];
            for (int i = 0; i < steps.size(); i++) {
                int number = steps.get(i) / 4;
                // Half of the blocks share a chain, half are spread.
                int block = number < 12 ? blocks[number] : 1000 + number;
                Integer buffer = model.get(block);
                switch (steps.get(i) % 4) {
                    case 0 -> {
                        int target = i % 16;
                        if (buffer == null) {
                            boolean mapped = p.map(target, block);
                            assertEquals(pins[target] == 0, mapped);
                            if (mapped) {
                                model.values().remove(target);
                                model.put(block, target);
                            }
                        }
                    }
                    case 1 -> {
                        if (buffer != null) {
                            boolean unmapped = p.unmap(buffer, block);
                            assertEquals(pins[buffer] == 0, unmapped);
                            if (unmapped) {
                                model.remove(block);
                            }
                        }
                    }
                    case 2 -> {
                        assertEquals(buffer == null ? PageLookup.ABSENT : buffer, p.pin(block));
                        if (buffer != null) {
                            pins[buffer]++;
                        }
                    }
                    default -> {
                        if (buffer != null && pins[buffer] > 0) {
                            p.descriptors.unpin(buffer);
                            pins[buffer]--;
                        }
                    }
                }
            }
            for (int buffer = 0; buffer < 16; buffer++) {
                assertEquals(pins[buffer], refcount(p.descriptors.state(buffer)));
                assertEquals(model.containsValue(buffer), p.table.isChained(buffer));
            }
            model.forEach((block, buffer) -> assertEquals(buffer, p.pin(block)));
        }
    }
}
