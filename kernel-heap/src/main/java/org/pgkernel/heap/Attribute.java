package org.pgkernel.heap;

/**
 * How one column's values are stored.
 *
 * @param length bytes; -1: varlena, says its own length; -2: ends with a zero byte. (PostgreSQL:
 *     attlen.)
 * @param alignment {@code c}, {@code s}, {@code i} or {@code d}: 1, 2, 4 or 8 bytes. (PostgreSQL:
 *     attalign.)
 * @param byValue a number of {@code length} bytes, carried as a {@code long}. (PostgreSQL:
 *     attbyval.)
 * @param storage of varlenas: {@code p}lain, {@code m}ain, {@code e}xternal, e{@code x}tended.
 *     (PostgreSQL: attstorage.)
 * @param compression {@code p} for pglz, {@code l} for lz4. (PostgreSQL: attcompression.)
 */
public record Attribute(
        String name, int length, char alignment, boolean byValue, char storage, char compression) {
    /** Length of a varlena. */
    public static final int VARLENA = -1;

    /** Length of a string that ends with a zero byte. */
    public static final int CSTRING = -2;

    public static final char PLAIN = 'p';
    public static final char MAIN = 'm';
    public static final char EXTERNAL = 'e';
    public static final char EXTENDED = 'x';

    public static final char PGLZ = 'p';
    public static final char LZ4 = 'l';

    public Attribute {
        if (length < CSTRING || length == 0 || byValue && !isWord(length)) {
            throw new IllegalArgumentException("attribute " + name + ": length " + length);
        }
        if ("csid".indexOf(alignment) < 0) {
            throw new IllegalArgumentException("attribute " + name + ": alignment " + alignment);
        }
        if ("pmex".indexOf(storage) < 0 || length != VARLENA && storage != PLAIN) {
            throw new IllegalArgumentException("attribute " + name + ": storage " + storage);
        }
        if (compression != PGLZ && compression != LZ4) {
            throw new IllegalArgumentException(
                    "attribute " + name + ": compression " + compression);
        }
    }

    /** A column of the named type, as pg_type describes it. */
    public static Attribute of(String name, String type) {
        return switch (type) {
            case "bool" -> number(name, 1, 'c');
            case "char" -> number(name, 1, 'c');
            case "int2" -> number(name, 2, 's');
            case "int4", "float4", "oid", "xid", "date" -> number(name, 4, 'i');
            case "int8", "float8", "timestamp", "timestamptz", "time" -> number(name, 8, 'd');
            case "name" -> new Attribute(name, 64, 'c', false, PLAIN, PGLZ);
            case "uuid" -> new Attribute(name, 16, 'c', false, PLAIN, PGLZ);
            case "tid" -> new Attribute(name, 6, 's', false, PLAIN, PGLZ);
            case "numeric" -> new Attribute(name, VARLENA, 'i', false, MAIN, PGLZ);
            case "text", "varchar", "bpchar", "bytea", "json", "jsonb" ->
                    new Attribute(name, VARLENA, 'i', false, EXTENDED, PGLZ);
            case "cstring" -> new Attribute(name, CSTRING, 'c', false, PLAIN, PGLZ);
            default ->
                    throw new IllegalArgumentException(
                            "attribute " + name + ": no description of type " + type);
        };
    }

    /** The same column with ALTER TABLE ... SET STORAGE. */
    public Attribute stored(char how) {
        return new Attribute(name, length, alignment, byValue, how, compression);
    }

    /** The same column with ALTER TABLE ... SET COMPRESSION. */
    public Attribute compressed(char how) {
        return new Attribute(name, length, alignment, byValue, storage, how);
    }

    private static Attribute number(String name, int length, char alignment) {
        return new Attribute(name, length, alignment, true, PLAIN, PGLZ);
    }

    private static boolean isWord(int length) {
        return length == 1 || length == 2 || length == 4 || length == 8;
    }
}
