package org.pgkernel.testkit.verify;

import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageChecksum;
import org.pgkernel.base.disk.Disk;

/**
 * Looks whether tables of a cluster that was shut down are whole: page headers and checksums, line
 * pointers, tuples, HOT chains, hints that agree with pg_xact, no xid that was not assigned yet,
 * and that a bit of the visibility map means the page's flag, and the flag that all is visible.
 * Nothing of a kernel's heap is used here. (PostgreSQL: verify_heapam, and collect_corrupt_items of
 * pg_visibility.)
 */
public final class HeapVerifier {
    private static final int MAP_BYTES = Page.SIZE - Page.HEADER_SIZE;
    private static final int BLOCKS_IN_MAP_PAGE = MAP_BYTES * 4;
    private static final int VISIBLE = 1;
    private static final int FROZEN = 2;
    private static final int MOST_FINDINGS = 20;

    private final Disk disk;
    private final String directory;
    private final TransactionFiles transactions;
    private final List<String> findings = new ArrayList<>();

    /**
     * @param directory of a cluster that was shut down
     */
    public HeapVerifier(Disk disk, String directory) {
        this.disk = disk;
        this.directory = directory;
        this.transactions = new TransactionFiles(disk, directory);
    }

    /** What must not be; empty if all is well. */
    public List<String> findings() {
        return List.copyOf(findings);
    }

    /**
     * @throws AssertionError with what must not be, if there is anything
     */
    public void requireClean() {
        if (!findings.isEmpty()) {
            throw new AssertionError(
                    String.join(
                            "\n", findings.subList(0, Math.min(findings.size(), MOST_FINDINGS))));
        }
    }

    /**
     * Looks at one table of less than a segment.
     *
     * @param path of its main fork, from the data directory on
     * @return rows that a new transaction would see
     */
    public int verify(String path) {
        UnsafeBuffer heap = fork(path, ForkNumber.MAIN);
        UnsafeBuffer map = fork(path, ForkNumber.VISIBILITY_MAP);
        fork(path, ForkNumber.FSM);
        int blocks = WholeFile.blocks(heap);
        int live = 0;
        for (int block = 0; block < blocks; block++) {
            UnsafeBuffer page = WholeFile.page(heap, block);
            String place = path + " block " + block;
            int bits = bits(map, block);
            if (Page.isNew(page)) {
                require(bits == 0, place, "an empty page has bits in the visibility map");
                continue;
            }
            PageVerifier verifier = new PageVerifier(page, block, transactions);
            live += verifier.verify();
            checkMap(page, place, bits, verifier);
            verifier.findings().forEach(finding -> findings.add(place + finding));
        }
        checkBehindTheEnd(path, map, blocks);
        return live;
    }

    private void checkBehindTheEnd(String path, UnsafeBuffer map, int blocks) {
        for (int mapBlock = 0; mapBlock < WholeFile.blocks(map); mapBlock++) {
            int from = mapBlock * Page.SIZE + Page.HEADER_SIZE;
            for (int i = 0; i < MAP_BYTES; i++) {
                if (map.getByte(from + i) != 0) {
                    checkBehindTheEnd(path, map, (mapBlock * MAP_BYTES + i) * 4, blocks);
                }
            }
        }
    }

    /** The blocks of one byte of the map. */
    private void checkBehindTheEnd(String path, UnsafeBuffer map, int first, int blocks) {
        for (int block = Math.max(first, blocks); block < first + 4; block++) {
            require(
                    bits(map, block) == 0,
                    path + " block " + BlockNumber.toString(block),
                    "bits in the visibility map behind the end");
        }
    }

    private void checkMap(UnsafeBuffer page, String place, int bits, PageVerifier verifier) {
        if (bits != 0) {
            require(Page.isAllVisible(page), place, "map bit without the page's flag");
            require((bits & VISIBLE) != 0, place, "all frozen but not all visible in the map");
        }
        if (Page.isAllVisible(page)) {
            String not = verifier.notVisible();
            require(not == null, place, "flagged all visible, but " + not);
        }
        if ((bits & FROZEN) != 0) {
            String not = verifier.notFrozen();
            require(not == null, place, "all frozen in the map, but " + not);
        }
    }

    private static int bits(UnsafeBuffer map, int block) {
        int mapBlock = block / BLOCKS_IN_MAP_PAGE;
        if (mapBlock >= WholeFile.blocks(map)) {
            return 0;
        }
        int inPage = block % BLOCKS_IN_MAP_PAGE;
        return map.getByte(mapBlock * Page.SIZE + Page.HEADER_SIZE + inPage / 4) >> inPage % 4 * 2
                & 3;
    }

    /** A fork whose pages have headers and checksums as they must. */
    private UnsafeBuffer fork(String path, ForkNumber fork) {
        String name = path + fork.suffix();
        UnsafeBuffer file = WholeFile.read(disk, directory + "/" + name);
        require(file.capacity() % Page.SIZE == 0, name, "ends with a piece of a page");
        boolean checksums = transactions.control().checksumsEnabled();
        for (int block = 0; block < WholeFile.blocks(file); block++) {
            UnsafeBuffer page = WholeFile.page(file, block);
            if (checksums && !Page.isNew(page)) {
                require(
                        Page.checksum(page) == PageChecksum.compute(page, block),
                        name + " block " + block,
                        "wrong checksum");
            }
        }
        return file;
    }

    private void require(boolean holds, String place, String what) {
        if (!holds) {
            findings.add(place + ": " + what);
        }
    }
}
