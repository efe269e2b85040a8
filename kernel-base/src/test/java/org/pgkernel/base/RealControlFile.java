package org.pgkernel.base;

import java.util.Arrays;
import java.util.HexFormat;

/**
 * The control file of a fresh PostgreSQL 15 cluster with checksums, as initdb left it; the values
 * are those that pg_controldata prints for it.
 */
final class RealControlFile {
    private static final String DATA =
            "2dea85d09a960d6b1405000025770d0c01000000000000009b960d6b00000000f014740100000000f014740100000000"
                    + "01000000010000000100000000000000d402000000000000043500000100000000000000cc0200000100000001000000"
                    + "01000000000000009b960d6b0000000000000000000000000000000000000000e8030000000000000000000000000000"
                    + "00000000000000000000000000000000000000000000000000000000010000000000000064000000080000000a000000"
                    + "000000004000000000000000080000000000000087d63241002000000000020000200000000000014000000020000000"
                    + "cc070000000800000100000001000000bdcbb4b62f92a6d9690f717b16e272fbdd221ba1e29c2baf04ded6ef93ea1ee7"
                    + "32f14977";

    private RealControlFile() {}

    static byte[] bytes() {
        return Arrays.copyOf(HexFormat.of().parseHex(DATA), 8192);
    }
}
