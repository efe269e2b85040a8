package org.pgkernel.bufmgr;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.pgkernel.smgr.SizePolicy;

/**
 * Whatever sequence of vectored reads, changes and extensions by several pages a fork has seen, on
 * a disk that is full at times and refuses or spoils blocks: the pages are those of a list.
 */
class GrowingForkProperties {
    @Provide
    Arbitrary<List<GrowingForkRun.Step>> steps() {
        return GrowingForkRun.steps();
    }

    @Provide
    Arbitrary<Integer> pools() {
        return Arbitraries.of(16, 20, 32, 64, 128);
    }

    @Property(tries = 150, edgeCases = EdgeCasesMode.NONE)
    void aForkReadInRunsAndGrownInBulkIsAList(
            @ForAll("steps") List<GrowingForkRun.Step> steps,
            @ForAll("pools") int nbuffers,
            @ForAll SizePolicy policy)
            throws IOException {
        Path directory = Files.createTempDirectory("growing");
        try (GrowingForkRun run =
                new GrowingForkRun(
                        directory,
                        policy,
                        nbuffers,
                        GrowingForkRun::reader,
                        GrowingForkRun::extension)) {
            run.run(steps);
        } finally {
            DropRun.delete(directory);
        }
    }
}
