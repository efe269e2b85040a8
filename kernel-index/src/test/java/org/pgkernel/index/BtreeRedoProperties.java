package org.pgkernel.index;

import static org.junit.jupiter.api.Assertions.*;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.index.BtreePages.Item;

/** The page changes of B-tree redo against lists of keys and tids. */
class BtreeRedoProperties {
    private static List<Long> tids(Random random, int count) {
        TreeSet<Long> tids = new TreeSet<>();
        while (tids.size() < count) {
            tids.add((long) random.nextInt(1 << 20) * 65536 * 16 + 1 + random.nextInt(200));
        }
        return new ArrayList<>(tids);
    }

    /** A leaf with high key and items of ascending keys, posting lists among them. */
    private static List<Item> fill(UnsafeBuffer page, Random random, int items, int distance) {
        BtreePages.addHighKey(page, 1_000_000);
        List<Item> model = new ArrayList<>();
        long key = 0;
        for (int i = 0; i < items; i++) {
            key += random.nextInt(distance);
            int count = random.nextInt(3) == 0 ? 2 + random.nextInt(12) : 1;
            Item item = new Item(key, tids(random, count));
            if (!BtreePages.add(page, item)) {
                break;
            }
            model.add(item);
        }
        return model;
    }

    @Property(tries = 300)
    void postingSplitKeepsEveryTidAndTheOrder(
            @ForAll @IntRange(min = 2, max = 100) int count, @ForAll long seed) {
        Random random = new Random(seed);
        UnsafeBuffer page = BtreePages.leaf();
        List<Item> model = fill(page, random, 20, 3);
        List<Long> list = tids(random, count + 1);
        int position = 1 + random.nextInt(count - 1);
        Long added = list.remove(position);
        Item posting = new Item(2_000_000, list);
        assertTrue(BtreePages.add(page, posting));
        UnsafeBuffer data = BtreePages.buffer();
        UnsafeBuffer tuple = BtreePages.buffer();
        BtreePages.plain(tuple, 2_000_000, added);
        data.putShort(0, (short) position);
        data.putBytes(2, tuple, 0, 16);
        int offset = Page.maxOffsetNumber(page) + 1;
        new BtreeInsertRedo().insertIntoPosting(page, offset, data, 18);
        List<Long> all = new ArrayList<>(list);
        all.add(position, added);
        model.add(new Item(2_000_000, all.subList(0, count)));
        model.add(new Item(2_000_000, List.of(all.get(count))));
        assertEquals(model, BtreePages.items(page, 2));
    }

    @Property(tries = 300)
    void postingSplitOutsideTheListIsRefusedAndChangesNothing(
            @ForAll @IntRange(min = 2, max = 50) int count, @ForAll boolean low) {
        UnsafeBuffer page = BtreePages.leaf();
        BtreePages.addHighKey(page, 9);
        BtreePages.add(page, new Item(1, tids(new Random(count), count)));
        byte[] before = page.byteArray().clone();
        UnsafeBuffer data = BtreePages.buffer();
        data.putShort(0, (short) (low ? 0 : count));
        UnsafeBuffer tuple = BtreePages.buffer();
        BtreePages.plain(tuple, 1, 5);
        data.putBytes(2, tuple, 0, 16);
        DamagedDataException e =
                assertThrows(
                        DamagedDataException.class,
                        () -> new BtreeInsertRedo().insertIntoPosting(page, 3, data, 18));
        assertTrue(e.getMessage().contains("cannot be split at offset"), e.getMessage());
        assertArrayEquals(before, page.byteArray());
    }

    @Property(tries = 300)
    void deduplicationMergesExactlyTheIntervals(@ForAll long seed, @ForAll boolean rightmost) {
        Random random = new Random(seed);
        UnsafeBuffer page = BtreePages.leaf();
        List<Item> model = fill(page, random, 150, 2);
        if (rightmost) {
            BtreePage.setNext(page, BtreePage.NONE);
            PageItems.indexTupleDelete(page, 1);
        }
        int first = rightmost ? 1 : 2;
        UnsafeBuffer intervals = BtreePages.buffer();
        List<Item> expected = new ArrayList<>();
        int count = 0;
        for (int i = 0; i < model.size(); ) {
            List<Long> merged = new ArrayList<>(model.get(i).tids());
            int end = i + 1;
            while (end < model.size()
                    && random.nextInt(5) != 0
                    && model.get(end).key() == model.get(i).key()
                    && merged.size() + model.get(end).tids().size() < 300) {
                merged.addAll(model.get(end++).tids());
            }
            if (end - i > 1) {
                intervals.putShort(count * 4, (short) (first + i));
                intervals.putShort(count * 4 + 2, (short) (end - i));
                count++;
            }
            expected.add(new Item(model.get(i).key(), merged));
            i = end;
        }
        byte[] before = page.byteArray().clone();
        UnsafeBuffer copy = BtreePages.buffer();
        new BtreeDedup().rebuild(page, copy, intervals, count);
        assertArrayEquals(before, page.byteArray(), "the page itself is not touched");
        assertEquals(expected, BtreePages.items(copy, first));
        assertEquals(BtreePage.flags(page) & ~BtreePage.HAS_GARBAGE, BtreePage.flags(copy));
        assertEquals(BtreePage.cycleId(page), BtreePage.cycleId(copy));
        assertEquals(BtreePage.prev(page), BtreePage.prev(copy));
        assertEquals(BtreePage.next(page), BtreePage.next(copy));
        assertTrue(Page.exactFreeSpace(copy) >= Page.exactFreeSpace(page));
    }

    @Property(tries = 300)
    void deletionAndUpdatesLeaveWhatWasNotNamed(@ForAll long seed) {
        Random random = new Random(seed);
        UnsafeBuffer page = BtreePages.leaf();
        List<Item> model = fill(page, random, 120, 4);
        List<Item> expected = new ArrayList<>();
        List<Integer> deleted = new ArrayList<>();
        List<Integer> updated = new ArrayList<>();
        List<List<Integer>> removed = new ArrayList<>();
        for (int i = 0; i < model.size(); i++) {
            Item item = model.get(i);
            int fate = random.nextInt(3);
            if (fate == 0) {
                deleted.add(i + 2);
            } else if (fate == 1 && item.tids().size() > 1) {
                List<Integer> positions = new ArrayList<>();
                List<Long> left = new ArrayList<>();
                for (int t = 0; t < item.tids().size(); t++) {
                    boolean last = t == item.tids().size() - 1;
                    boolean keep = last && left.isEmpty() || random.nextBoolean();
                    if (keep && !(last && positions.isEmpty())) {
                        left.add(item.tids().get(t));
                    } else {
                        positions.add(t);
                    }
                }
                if (left.isEmpty() || positions.isEmpty()) {
                    expected.add(item);
                    continue;
                }
                updated.add(i + 2);
                removed.add(positions);
                expected.add(new Item(item.key(), left));
            } else {
                expected.add(item);
            }
        }
        UnsafeBuffer data = BtreePages.buffer();
        int at = 0;
        for (int offset : deleted) {
            data.putShort(at, (short) offset);
            at += 2;
        }
        for (int offset : updated) {
            data.putShort(at, (short) offset);
            at += 2;
        }
        for (List<Integer> positions : removed) {
            data.putShort(at, (short) positions.size());
            at += 2;
            for (int position : positions) {
                data.putShort(at, (short) position);
                at += 2;
            }
        }
        new BtreeDeleteRedo().change(page, data, at, deleted.size(), updated.size());
        assertEquals(expected, BtreePages.items(page, 2));
    }

    @Property(tries = 300)
    void splitRebuildsTheLeftHalfInKeyOrder(
            @ForAll long seed, @ForAll boolean onLeft, @ForAll boolean splitsPosting) {
        Random random = new Random(seed);
        UnsafeBuffer page = BtreePages.leaf();
        List<Item> model = fill(page, random, 100, 4);
        List<Integer> postings = new ArrayList<>();
        for (int i = 0; i < model.size(); i++) {
            if (model.get(i).tids().size() > 1) {
                postings.add(i);
            }
        }
        if (splitsPosting && postings.isEmpty()) {
            return;
        }
        // The posting list right before the new item's place, and where in it the new tid belongs.
        int before =
                splitsPosting
                        ? postings.get(random.nextInt(postings.size()))
                        : random.nextInt(model.size());
        int newItemIndex = before + 1;
        int position = splitsPosting ? 1 + random.nextInt(model.get(before).tids().size() - 1) : 0;
        int firstRightIndex =
                onLeft
                        ? newItemIndex + random.nextInt(model.size() - newItemIndex + 1)
                        : splitsPosting ? newItemIndex : random.nextInt(newItemIndex + 1);
        List<Item> expected = new ArrayList<>(model.subList(0, firstRightIndex));
        long added = splitsPosting ? model.get(before).tids().get(position) - 1 : 77;
        Item newItem = new Item(model.get(before).key(), List.of(added));
        if (splitsPosting) {
            List<Long> list = new ArrayList<>(model.get(before).tids());
            long highest = list.remove(list.size() - 1);
            list.add(position, added);
            expected.set(before, new Item(newItem.key(), list));
            if (onLeft) {
                expected.add(newItemIndex, new Item(newItem.key(), List.of(highest)));
            }
        } else if (onLeft) {
            expected.add(newItemIndex, newItem);
        }
        UnsafeBuffer main = new UnsafeBuffer(new byte[10]);
        main.putShort(4, (short) (firstRightIndex + 2));
        main.putShort(6, (short) (newItemIndex + 2));
        main.putShort(8, (short) position);
        UnsafeBuffer data = BtreePages.buffer();
        UnsafeBuffer tuple = BtreePages.buffer();
        int length = 0;
        if (onLeft || splitsPosting) {
            length += BtreePages.form(tuple, newItem);
            data.putBytes(0, tuple, 0, length);
        }
        BtreePages.plain(tuple, 555, 1);
        data.putBytes(length, tuple, 0, 16);
        byte[] untouched = page.byteArray().clone();
        BtreeSplitRedo split = new BtreeSplitRedo();
        split.rebuildLeft(page, main, data, length + 16, onLeft);
        assertArrayEquals(untouched, page.byteArray(), "the page itself is not touched");
        assertEquals(555, BtreePages.items(split.copy(), 1).get(0).key(), "the new high key");
        assertEquals(expected, BtreePages.items(split.copy(), 2));
    }

    /** Whatever the record calls the new item's place: it is on the page afterwards, or refused. */
    @Property(tries = 300)
    void aSplitNeverLosesItsNewItem(
            @ForAll long seed, @ForAll @IntRange(min = 0, max = 60) int newItemOffset) {
        UnsafeBuffer page = BtreePages.leaf();
        List<Item> model = fill(page, new Random(seed), 40, 1);
        UnsafeBuffer main = new UnsafeBuffer(new byte[10]);
        main.putShort(4, (short) (2 + model.size() / 2));
        main.putShort(6, (short) newItemOffset);
        UnsafeBuffer data = BtreePages.buffer();
        UnsafeBuffer tuple = BtreePages.buffer();
        Item newItem = new Item(123_456_789, List.of(77L));
        BtreePages.form(tuple, newItem);
        data.putBytes(0, tuple, 0, 16);
        data.putBytes(16, tuple, 0, 16);
        BtreeSplitRedo split = new BtreeSplitRedo();
        try {
            split.rebuildLeft(page, main, data, 32, true);
        } catch (DamagedDataException e) {
            assertTrue(newItemOffset < 2 || newItemOffset > 2 + model.size() / 2);
            return;
        }
        assertTrue(BtreePages.items(split.copy(), 2).contains(newItem));
    }

    @Test
    void anIntervalThatRunsPastThePageIsRefused() {
        UnsafeBuffer page = BtreePages.leaf();
        BtreePages.addHighKey(page, 9);
        BtreePages.add(page, new Item(1, List.of(5L)));
        BtreePages.add(page, new Item(1, List.of(6L)));
        UnsafeBuffer intervals = new UnsafeBuffer(new byte[4]);
        intervals.putShort(0, (short) 2);
        intervals.putShort(2, (short) 3);
        assertThrows(
                DamagedDataException.class,
                () -> new BtreeDedup().rebuild(page, BtreePages.buffer(), intervals, 1));
    }

    @Test
    void anItemWithoutLinePointerIsRefused() {
        UnsafeBuffer page = BtreePages.leaf();
        UnsafeBuffer tuple = BtreePages.buffer();
        BtreePages.plain(tuple, 1, 5);
        byte[] before = page.byteArray().clone();
        assertThrows(DamagedDataException.class, () -> BtreeParts.add(page, tuple, 0, 16, 0));
        assertArrayEquals(before, page.byteArray());
    }

    @Property(tries = 200)
    void restoredPageHasTheTuplesWhereTheyWere(@ForAll long seed) {
        UnsafeBuffer page = BtreePages.leaf();
        fill(page, new Random(seed), 200, 4);
        int upper = Page.upper(page);
        UnsafeBuffer data = BtreePages.buffer();
        data.putBytes(0, page, upper, BtreePage.SPECIAL - upper);
        UnsafeBuffer restored = BtreePages.leaf();
        BtreeParts.restorePage(
                restored, data, BtreePage.SPECIAL - upper, new int[PageItems.MAX_LINE_POINTERS]);
        assertArrayEquals(page.byteArray(), restored.byteArray());
    }

    @Property(tries = 2000)
    void damagedPagesAndRecordsAreToldAndNeverReadPastTheirEnd(
            @ForAll long seed, @ForAll @IntRange(min = 1, max = 6) int bytes) {
        Random random = new Random(seed);
        UnsafeBuffer page = BtreePages.leaf();
        fill(page, random, 60, 3);
        byte[] raw = page.byteArray();
        for (int i = 0; i < bytes; i++) {
            int at =
                    switch (random.nextInt(3)) {
                        case 0 -> random.nextInt(24 + 80);
                        case 1 -> BtreePage.SPECIAL + random.nextInt(16);
                        default -> Page.SIZE - 1500 + random.nextInt(1484);
                    };
            raw[at] = (byte) random.nextInt();
        }
        UnsafeBuffer data = new UnsafeBuffer(new byte[64]);
        random.nextBytes(data.byteArray());
        data.putShort(0, (short) random.nextInt(70));
        data.putShort(2, (short) random.nextInt(70));
        UnsafeBuffer main = new UnsafeBuffer(new byte[10]);
        main.putShort(4, (short) random.nextInt(70));
        main.putShort(6, (short) random.nextInt(70));
        main.putShort(8, (short) random.nextInt(4));
        try {
            BtreePage.check(page);
            switch (random.nextInt(5)) {
                case 0 ->
                        new BtreeDedup()
                                .rebuild(page, BtreePages.buffer(), data, random.nextInt(5));
                case 1 ->
                        new BtreeDeleteRedo()
                                .change(page, data, 64, random.nextInt(4), 1 + random.nextInt(3));
                case 2 ->
                        new BtreeInsertRedo()
                                .insertIntoPosting(page, 1 + random.nextInt(60), data, 18);
                case 3 ->
                        new BtreeSplitRedo()
                                .rebuildLeft(page, main, data, 64, random.nextBoolean());
                default -> BtreePageRedo.removeDownlink(page, random.nextInt(70));
            }
        } catch (DamagedDataException | IndexOutOfBoundsException e) {
            // Both become a DamagedDataException with the place in IndexResourceManager.redo.
            assertNotNull(e.getMessage());
        }
    }
}
