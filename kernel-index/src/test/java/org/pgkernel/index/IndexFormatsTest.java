package org.pgkernel.index;

import static org.junit.jupiter.api.Assertions.*;

import java.util.List;
import java.util.ServiceLoader;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.index.BtreePages.Item;
import org.pgkernel.recovery.RecoveryModuleProvider;
import org.pgkernel.recovery.ResourceManager;

class IndexFormatsTest {
    private static List<ResourceManager> managers() {
        return new IndexModuleProvider().create(null).resourceManagers();
    }

    @Test
    void providerIsFoundOnTheClassPath() {
        assertTrue(
                ServiceLoader.load(RecoveryModuleProvider.class).stream()
                        .anyMatch(found -> found.type() == IndexModuleProvider.class));
    }

    @Test
    void resourceManagersHaveThePlacesAndNamesThatPgWaldumpPrints() {
        assertEquals(
                List.of(
                        "11 Btree",
                        "12 Hash",
                        "13 Gin",
                        "14 Gist",
                        "15 Sequence",
                        "16 SPGist",
                        "17 BRIN",
                        "20 Generic"),
                managers().stream().map(m -> m.id() + " " + m.name()).toList());
    }

    @Test
    void accessMethodsNotCoveredAreKnownByName() {
        ResourceManager brin = managers().get(6);
        assertEquals("INSERT+INIT", brin.identify(0x90));
        assertEquals("UPDATE+INIT", brin.identify(0xA0));
        assertFalse(brin.covers(0x90));
        ResourceManager hash = managers().get(1);
        assertEquals("VACUUM_ONE_PAGE", hash.identify(0xC0));
        assertNull(hash.identify(0xD0));
        ResourceManager gin = managers().get(2);
        assertNull(gin.identify(0x00));
        assertEquals("VACUUM_DATA_LEAF_PAGE", gin.identify(0x90));
        ResourceManager gist = managers().get(3);
        assertNull(gist.identify(0x40));
        assertEquals("ASSIGN_LSN", gist.identify(0x70));
        assertEquals("VACUUM_REDIRECT", managers().get(5).identify(0x80));
    }

    @Test
    void everyBtreeTypeIsCoveredAndTheUnusedOneIsNot() {
        ResourceManager btree = managers().get(0);
        for (int type = 0; type <= 0xE0; type += 0x10) {
            assertTrue(btree.covers(type), btree.identify(type));
        }
        assertFalse(btree.covers(0xF0));
        assertEquals("UNLINK_PAGE_META", btree.identify(0x90));
        assertEquals("VACUUM", btree.identify(0xC0));
    }

    @Test
    void metapageIsFormedWithPaddingZeroAndLowerPastIt() {
        UnsafeBuffer data = new UnsafeBuffer(new byte[28]);
        for (int i = 0; i < 6; i++) {
            data.putInt(i * 4, i + 4);
        }
        data.putInt(24, -1);
        data.putByte(24, (byte) 1);
        UnsafeBuffer page = BtreePages.buffer();
        page.setMemory(0, Page.SIZE, (byte) 0x55);
        BtreePage.formMeta(page, data);
        assertEquals(72, Page.lower(page));
        assertEquals(BtreePage.META_MAGIC, page.getInt(24));
        assertEquals(4, page.getInt(28), "version");
        assertEquals(5, page.getInt(32), "root");
        assertEquals(9, page.getInt(48), "deleted pages");
        assertEquals(0, page.getInt(52), "padding");
        assertEquals(-1.0, page.getDouble(56));
        assertEquals(1, page.getByte(64));
        for (int i = 65; i < BtreePage.SPECIAL; i++) {
            assertEquals(0, page.getByte(i));
        }
        assertEquals(BtreePage.META, BtreePage.flags(page));
    }

    @Test
    void halfDeadPageHasADummyHighKeyThatPointsToTheTopParent() {
        UnsafeBuffer page = BtreePages.buffer();
        BtreeParts.formHalfDead(page, 3, 5, 0x12345, new UnsafeBuffer(new byte[8]));
        int itemId = Page.itemId(page, 1);
        assertEquals(8, Page.lpLength(itemId));
        int at = Page.lpOffset(itemId);
        assertEquals(0x12345, IndexTuple.tidBlock(page, at));
        assertEquals(0, IndexTuple.tidOffset(page, at));
        assertTrue(BtreeTuple.isPivot(page, at));
        assertEquals(BtreePage.HALF_DEAD | BtreePage.LEAF, BtreePage.flags(page));
    }

    @Test
    void deletedPageHoldsItsSafeXidInsteadOfItems() {
        UnsafeBuffer page = BtreePages.buffer();
        BtreePage.init(page);
        BtreePage.setFlags(page, BtreePage.HALF_DEAD);
        BtreePage.setDeleted(page, 0x1_00000007L);
        assertEquals(32, Page.lower(page));
        assertEquals(0x1_00000007L, page.getLong(24));
        assertEquals(BtreePage.DELETED | BtreePage.HAS_FULLXID, BtreePage.flags(page));
    }

    @Test
    void removedDownlinkGivesItsKeyTheNextChild() {
        UnsafeBuffer page = BtreePages.leaf();
        BtreePages.addHighKey(page, 100);
        for (long key = 1; key <= 3; key++) {
            BtreePages.add(page, new Item(key, List.of(key << 16)));
        }
        BtreePageRedo.removeDownlink(page, 3);
        assertEquals(
                List.of(new Item(1, List.of(1L << 16)), new Item(2, List.of(3L << 16))),
                BtreePages.items(page, 2));
    }

    @Test
    void blockNumbersInTidsHaveTheirUpperHalfFirst() {
        UnsafeBuffer tuple = new UnsafeBuffer(new byte[8]);
        IndexTuple.setTidBlock(tuple, 0, 0x80010002);
        assertEquals((short) 0x8001, tuple.getShort(0));
        assertEquals(2, tuple.getShort(2));
        assertEquals(0x80010002, IndexTuple.tidBlock(tuple, 0));
    }

    @Test
    void updatedPostingListOfOneTidIsAPlainTuple() {
        UnsafeBuffer list = BtreePages.buffer();
        BtreePages.posting(list, 5, List.of(10L, 20L, 30L));
        UnsafeBuffer removed = new UnsafeBuffer(new byte[4]);
        removed.putShort(0, (short) 0);
        removed.putShort(2, (short) 2);
        UnsafeBuffer left = BtreePages.buffer();
        assertEquals(16, BtreeTuple.updatePosting(left, list, 0, removed, 0, 2));
        UnsafeBuffer plain = BtreePages.buffer();
        BtreePages.plain(plain, 5, 20);
        assertEquals(plain, left);
        assertThrows(
                DamagedDataException.class,
                () -> BtreeTuple.updatePosting(left, list, 0, new UnsafeBuffer(new byte[6]), 0, 3),
                "no tid would be left");
    }

    @Test
    void genericDeltaIsCheckedBeforeAnythingChanges() {
        UnsafeBuffer delta = new UnsafeBuffer(new byte[12]);
        delta.putShort(0, (short) 8190);
        delta.putShort(2, (short) 2);
        GenericResourceManager.checkDelta(delta, 6);
        delta.putShort(0, (short) 8191);
        assertThrows(DamagedDataException.class, () -> GenericResourceManager.checkDelta(delta, 6));
        delta.putShort(0, (short) 0);
        delta.putShort(2, (short) 9);
        assertThrows(
                DamagedDataException.class, () -> GenericResourceManager.checkDelta(delta, 12));
        assertThrows(DamagedDataException.class, () -> GenericResourceManager.checkDelta(delta, 3));
    }
}
