package org.pgkernel.base;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HexFormat;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** BASE-4. */
final class PageVerifyTest {
    private static final int BLOCK = 5;

    private final UnsafeBuffer page = new UnsafeBuffer(new byte[Page.SIZE]);

    private boolean valid(boolean checksums) {
        return PageVerify.isValid(page, BLOCK, checksums);
    }

    private void format() {
        Page.init(page, 16);
        Page.setLsn(page, 0x1_0000_2000L);
        page.putInt(8000, 0x12345678);
        Page.setChecksum(page, PageChecksum.compute(page, BLOCK));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("C31 (1): a page of zeros is valid")
    void zeroPageIsValid(boolean checksums) {
        assertTrue(valid(checksums));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 8, 9, 24, 4096, 8191})
    @DisplayName("C31 (1): one stray byte in a page of zeros is damage")
    void strayByteIsDamage(int at) {
        page.putByte(at, (byte) 1);
        assertFalse(valid(true));
        assertFalse(valid(false));
        assertTrue(PageVerify.whyInvalid(page, BLOCK, true).contains("never formatted"));
    }

    @Test
    @DisplayName("C31 (1): a good page is judged by its checksum, at its own block only")
    void goodPageIsValidAtItsBlock() {
        format();
        assertTrue(valid(true));
        assertTrue(valid(false));
        assertFalse(PageVerify.isValid(page, BLOCK + 1, true));
        page.putByte(5000, (byte) 1);
        assertFalse(valid(true));
        assertTrue(valid(false), "without checksums only the header speaks");
        assertTrue(PageVerify.whyInvalid(page, BLOCK, true).contains("calculated checksum"));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("C31 (1): pd_upper 0 with other content is damage, even with a fitting checksum")
    void zeroUpperWithContentIsDamage(boolean checksums) {
        format();
        Page.setUpper(page, 0);
        Page.setChecksum(page, PageChecksum.compute(page, BLOCK));
        assertFalse(valid(checksums));
    }

    @Test
    void headerMustBeSaneEvenWhenTheChecksumFits() {
        refuses(Page.PD_LOWER, 8177);
        refuses(Page.PD_UPPER, 8184);
        refuses(Page.PD_SPECIAL, 8200);
        refuses(Page.PD_SPECIAL, 8180);
        refuses(Page.PD_FLAGS, 8);
    }

    private void refuses(int field, int value) {
        format();
        page.putShort(field, (short) value);
        Page.setChecksum(page, PageChecksum.compute(page, BLOCK));
        assertFalse(valid(true), "field " + field);
        assertFalse(valid(false), "field " + field);
        assertTrue(PageVerify.whyInvalid(page, BLOCK, true).contains("bad header"));
    }

    @Test
    void pageThatPostgresWroteHasOurChecksum() {
        // The metapage of a B-tree, block 0, from a cluster with checksums; all else on it is zero.
        page.putBytes(
                4,
                HexFormat.of()
                        .parseHex(
                                "98593301aecb00004800f01ff01f042000000000623105000400000003000000010000000300000001"));
        page.putBytes(62, HexFormat.of().parseHex("f0bf01"));
        page.putByte(8188, (byte) 8);
        assertEquals(0xCBAE, Page.checksum(page));
        assertEquals(0xCBAE, PageChecksum.compute(page, 0));
        assertTrue(PageVerify.isValid(page, 0, true));
    }
}
