package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.DamagedDataException;

class HeapScanTest {
    private static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(Attribute.of("a", "int4"), Attribute.of("b", "text"));

    private final HeapRig rig = new HeapRig(1);
    private final HeapRelation table = rig.table(20000, COLUMNS);
    private final HeapRig.Session writer = rig.session();
    private final HeapRig.Session reader = rig.session();

    @AfterEach
    void redoMakesTheSamePages() {
        rig.checkRedo(table);
        rig.close();
    }

    private UnsafeBuffer page(int block) {
        return rig.page(table.storage(), ForkNumber.MAIN, block);
    }

    private int lineFlags(long tid) {
        return Page.lpFlags(Page.itemId(page(TupleId.block(tid)), TupleId.offset(tid)));
    }

    private long insert(String text) {
        writer.begin();
        long tid = writer.insert(table, 0, text);
        writer.commit();
        return tid;
    }

    /** Each version in a transaction of its own. @return the last one's place */
    private long update(long tid, int times, int length) {
        long at = tid;
        for (int i = 1; i <= times; i++) {
            writer.begin();
            assertEquals(
                    TupleOutcome.OK,
                    writer.update(table, at, i, "v".repeat(length)),
                    "update " + i);
            at = writer.updater.newTid();
            writer.commit();
        }
        return at;
    }

    /** HEAP-21. */
    @Test
    void aReaderPrunesAPageThatIsGettingFullAndFindsTheRowThroughItsRoot() {
        long root = insert("first");
        update(root, 6, 1200);
        assertTrue(PageItems.heapFreeSpace(page(0)) < 819);
        reader.begin();
        assertEquals(1, reader.rows(table, reader.mvcc).size());
        assertEquals(Page.LP_REDIRECT, lineFlags(root));
        assertTrue(PageItems.heapFreeSpace(page(0)) > 6000);
        assertTrue(reader.fetch.fetchHot(table, root, reader.mvcc));
        RowValues row = new RowValues(COLUMNS);
        reader.fetch.tuple().read(row);
        assertEquals(6, row.number(0));
        assertFalse(reader.fetch.fetch(table, root, reader.mvcc), "there is no tuple");
        reader.commit();
    }

    @Test
    void aFetchByTheRootPrunesToo() {
        long root = insert("first");
        update(root, 6, 1200);
        reader.begin();
        assertTrue(reader.fetch.fetchHot(table, root, reader.mvcc));
        assertEquals(Page.LP_REDIRECT, lineFlags(root));
        reader.commit();
    }

    @Test
    void nothingIsPrunedThatSomebodyMaySeeOrWhileThereIsRoom() {
        long root = insert("first");
        reader.begin();
        update(root, 6, 1200);
        HeapRig.Session third = rig.session();
        third.begin();
        assertEquals(1, third.rows(table, third.mvcc).size());
        assertEquals(Page.LP_NORMAL, lineFlags(root), "the reader's snapshot sees it");
        assertEquals(List.of("[0, first]"), List.copyOf(reader.rows(table, reader.mvcc).values()));
        assertTrue(reader.fetch.fetchHot(table, root, reader.mvcc));
        assertEquals(root, reader.fetch.tuple().tid());
        reader.commit();
        third.nextCommand();
        third.rows(table, third.mvcc);
        assertEquals(Page.LP_NORMAL, lineFlags(root), "the reader's pin is still there");
        reader.fetch.close();
        third.nextCommand();
        third.rows(table, third.mvcc);
        assertEquals(Page.LP_REDIRECT, lineFlags(root));
        third.commit();
        long other = insert("room");
        update(other, 2, 10);
        reader.begin();
        reader.rows(table, reader.mvcc);
        assertEquals(Page.LP_NORMAL, lineFlags(other), "there is room");
        reader.commit();
    }

    @Test
    void eachSnapshotFindsItsVersionInTheChain() {
        long root = insert("0");
        HeapRig.Session[] readers = new HeapRig.Session[4];
        long at = root;
        for (int i = 0; i < readers.length; i++) {
            readers[i] = rig.session();
            readers[i].begin();
            at = update(at, 1, i + 1);
        }
        String[] expected = {"[0, 0]", "[1, v]", "[1, vv]", "[1, vvv]"};
        for (int i = 0; i < readers.length; i++) {
            assertTrue(readers[i].fetch.fetchHot(table, root, readers[i].mvcc));
            RowValues row = new RowValues(COLUMNS);
            readers[i].fetch.tuple().read(row);
            assertEquals(expected[i], readers[i].text(table, row));
            assertEquals(
                    List.of(expected[i]),
                    List.copyOf(readers[i].rows(table, readers[i].mvcc).values()));
            readers[i].commit();
        }
        reader.begin();
        assertTrue(reader.fetch.fetchHot(table, root, HeapSnapshot.SELF));
        assertEquals(at, reader.fetch.tuple().tid());
        assertFalse(reader.fetch.fetchHot(table, at, reader.mvcc), "no chain begins there");
        assertFalse(reader.fetch.fetchHot(table, TupleId.of(0, 99), reader.mvcc));
        assertFalse(reader.fetch.fetchHot(table, TupleId.INVALID, reader.mvcc));
        reader.commit();
    }

    /** R01: what stands at the chain's next place is another row's. */
    @Test
    void aChainEndsWhereTheNextVersionIsNotItsOwn() {
        long root = insert("0");
        long next = update(root, 1, 5);
        rig.change(
                table,
                0,
                page ->
                        HeapTupleHeader.setXmin(
                                page, HeapPage.tupleAt(page, TupleId.offset(next)), 900));
        reader.begin();
        assertFalse(reader.fetch.fetchHot(table, root, reader.mvcc));
        reader.commit();
        rig.change(
                table,
                0,
                page ->
                        HeapTupleHeader.setXmin(
                                page,
                                HeapPage.tupleAt(page, TupleId.offset(next)),
                                HeapTupleHeader.xmax(
                                        page, HeapPage.tupleAt(page, TupleId.offset(root)))));
    }

    @Test
    void theAllVisibleFlagSparesAnMvccScanTheLookAtEachTuple() {
        writer.begin();
        writer.insert(table, 1, "not committed");
        rig.change(table, 0, Page::setAllVisible);
        reader.begin();
        assertEquals(1, reader.rows(table, reader.mvcc).size(), "the flag is believed");
        assertEquals(0, reader.rows(table, HeapSnapshot.SELF).size());
        reader.commit();
        rig.change(table, 0, Page::clearAllVisible);
        writer.commit();
    }

    @Test
    void rowsOfAPinnedPageStayWhereTheyAreWhileOthersDeleteThem() {
        writer.begin();
        for (int i = 0; i < 7; i++) {
            writer.insert(table, i, "r".repeat(1100));
        }
        writer.commit();
        reader.begin();
        reader.scan.begin(table, reader.mvcc);
        assertTrue(reader.scan.next());
        RowValues row = new RowValues(COLUMNS);
        reader.session.commit(true);
        reader.session.forgetSnapshots();
        writer.begin();
        for (int i = 1; i <= 7; i++) {
            assertEquals(TupleOutcome.OK, writer.delete(table, TupleId.of(0, i)));
        }
        writer.commit();
        writer.begin();
        assertEquals(0, writer.rows(table, writer.mvcc).size());
        assertEquals(0, writer.rows(table, writer.mvcc).size());
        for (int i = 0; i < 7; i++) {
            reader.scan.tuple().read(row);
            assertEquals("[" + i + ", " + "r".repeat(1100) + "]", reader.text(table, row));
            assertEquals(i < 6, reader.scan.next());
        }
        writer.nextCommand();
        writer.rows(table, writer.mvcc);
        writer.commit();
        assertEquals(Page.LP_DEAD, lineFlags(TupleId.of(0, 1)), "once the pin was given up");
    }

    @Test
    void blocksAddedSinceTheScanBeganAreNotRead() {
        insert("a".repeat(2000));
        reader.begin();
        reader.scan.begin(table, HeapSnapshot.SELF);
        assertTrue(reader.scan.next());
        for (int i = 0; i < 9; i++) {
            insert("b".repeat(2000));
        }
        int rows = 1;
        while (reader.scan.next()) {
            rows++;
        }
        assertEquals(1, rows, "this page was looked at before");
        assertEquals(10, reader.rows(table, HeapSnapshot.SELF).size());
        reader.commit();
    }

    @Test
    void damageIsNamedWithItsPlaceAndNothingStaysHeld() {
        insert("x");
        UnsafeBuffer good = page(0);
        rig.change(table, 0, page -> Page.setItemId(page, 1, Page.packItemId(8190, 1, 30)));
        reader.begin();
        for (int i = 0; i < 2; i++) {
            boolean scan = i == 0;
            DamagedDataException e =
                    assertThrows(
                            DamagedDataException.class,
                            () -> {
                                if (scan) {
                                    reader.rows(table, reader.mvcc);
                                } else {
                                    reader.fetch.fetch(table, TupleId.of(0, 1), reader.mvcc);
                                }
                            });
            assertEquals("invalid lp 1 rel=1663/5/20000 fork=MAIN block=0", e.getMessage());
        }
        reader.scan.close();
        reader.fetch.close();
        assertEquals(0, reader.buffers.pinnedBuffers());
        reader.commit();
        rig.change(table, 0, page -> page.putBytes(0, good, 0, Page.SIZE));
    }

    /** A hint that a commit is durable waits until it is. */
    @Test
    void noHintReachesThePageBeforeItsCommitIsDurable() {
        writer.begin();
        long tid = writer.insert(table, 1, "later");
        rig.wal.flush(rig.wal.insertLsn());
        writer.session.commit(false);
        writer.session.forgetSnapshots();
        writer.backend.endTransaction();
        // Another page's change moves no LSN of this one.
        reader.begin();
        assertEquals(1, reader.rows(table, reader.mvcc).size());
        assertEquals(0, infomask(tid) & HeapTupleHeader.HEAP_XMIN_COMMITTED);
        rig.wal.flush(rig.wal.insertLsn());
        assertEquals(1, reader.rows(table, reader.mvcc).size());
        assertTrue((infomask(tid) & HeapTupleHeader.HEAP_XMIN_COMMITTED) != 0);
        reader.commit();
    }

    private int infomask(long tid) {
        UnsafeBuffer page = page(TupleId.block(tid));
        return HeapTupleHeader.infomask(page, HeapPage.tupleAt(page, TupleId.offset(tid)));
    }
}
