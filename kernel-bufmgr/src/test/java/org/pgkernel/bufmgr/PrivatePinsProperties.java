package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

/** Private pin counts behave like a map from buffers to numbers. */
class PrivatePinsProperties {
    @Property(tries = 300)
    void countsAreThoseOfAMap(
            @ForAll @Size(max = 200) List<@IntRange(min = -15, max = 30) Integer> steps) {
        PrivatePins pins = new PrivatePins();
        Map<Integer, Integer> model = new HashMap<>();
        for (int step : steps) {
            int buffer = Math.abs(step); // negative: a release, of a buffer pinned more often
            if (step >= 0) {
                assertEquals(model.merge(buffer, 1, Integer::sum), pins.add(buffer));
            } else if (model.containsKey(buffer)) {
                int left = model.merge(buffer, -1, Integer::sum);
                model.remove(buffer, 0);
                assertEquals(left, pins.remove(buffer));
            }
            assertEquals(model.size(), pins.distinct());
            for (int b = 0; b <= 30; b++) {
                assertEquals(model.getOrDefault(b, 0), pins.count(b), "buffer " + b);
            }
        }
    }
}
