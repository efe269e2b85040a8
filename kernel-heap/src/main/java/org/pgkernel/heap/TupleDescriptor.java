package org.pgkernel.heap;

import java.util.List;
import java.util.Set;

/**
 * The columns of a table, in the form that forming and deforming read: parallel arrays, and for
 * each column its place after {@code t_hoff} if that is the same in every tuple without nulls
 * before it. Immutable. (PostgreSQL: TupleDesc, attcacheoff.)
 */
public final class TupleDescriptor {
    /** (PostgreSQL: MaxTupleAttributeNumber.) */
    public static final int MAX_ATTRIBUTES = 1664;

    private static final int UNKNOWN = -1;

    private final Attribute[] attributes;
    private final int[] lengths;
    private final int[] alignMasks;
    private final int[] fixedOffsets;
    private final boolean[] indexed;
    private final boolean[] keys;
    private final boolean hasIndexed;

    public TupleDescriptor(List<Attribute> columns) {
        this(columns, Set.of(), Set.of());
    }

    /**
     * @param indexed names of the columns that some index is about: an update that changes one is
     *     not heap-only (PostgreSQL: INDEX_ATTR_BITMAP_ALL)
     * @param keys those among them that a foreign key may refer to: an update that changes one
     *     locks the row against its readers (PostgreSQL: INDEX_ATTR_BITMAP_KEY)
     */
    public TupleDescriptor(List<Attribute> columns, Set<String> indexed, Set<String> keys) {
        this(columns, marked(columns, indexed), marked(columns, keys));
    }

    private static boolean[] marked(List<Attribute> columns, Set<String> names) {
        boolean[] marks = new boolean[columns.size()];
        int found = 0;
        for (int i = 0; i < marks.length; i++) {
            marks[i] = names.contains(columns.get(i).name());
            found += marks[i] ? 1 : 0;
        }
        if (found < names.size()) {
            throw new IllegalArgumentException("not all of " + names + " are columns");
        }
        return marks;
    }

    private TupleDescriptor(List<Attribute> columns, boolean[] indexed, boolean[] keys) {
        if (columns.size() > MAX_ATTRIBUTES) {
            throw new IllegalArgumentException(
                    "number of columns (" + columns.size() + ") exceeds limit " + MAX_ATTRIBUTES);
        }
        attributes = columns.toArray(Attribute[]::new);
        lengths = new int[attributes.length];
        alignMasks = new int[attributes.length];
        fixedOffsets = new int[attributes.length];
        this.indexed = indexed;
        this.keys = keys;
        boolean any = false;
        for (int i = 0; i < attributes.length; i++) {
            indexed[i] |= keys[i];
            any |= indexed[i];
        }
        hasIndexed = any;
        int offset = 0;
        for (int i = 0; i < attributes.length; i++) {
            Attribute attribute = attributes[i];
            lengths[i] = attribute.length();
            alignMasks[i] = alignMask(attribute.alignment());
            fixedOffsets[i] = offset == UNKNOWN ? UNKNOWN : fixedOffset(i, offset);
            offset =
                    fixedOffsets[i] == UNKNOWN || lengths[i] < 0
                            ? UNKNOWN
                            : fixedOffsets[i] + lengths[i];
        }
    }

    public static TupleDescriptor of(Attribute... columns) {
        return new TupleDescriptor(List.of(columns));
    }

    /**
     * A varlena may begin unaligned if its header is short, so its place is fixed only where both
     * kinds begin alike.
     */
    private int fixedOffset(int i, int offset) {
        int aligned = offset + alignMasks[i] & ~alignMasks[i];
        return lengths[i] == Attribute.VARLENA && aligned != offset ? UNKNOWN : aligned;
    }

    private static int alignMask(char alignment) {
        return switch (alignment) {
            case 'c' -> 0;
            case 's' -> 1;
            case 'i' -> 3;
            default -> 7;
        };
    }

    public int count() {
        return attributes.length;
    }

    public Attribute attribute(int i) {
        return attributes[i];
    }

    boolean hasIndexed() {
        return hasIndexed;
    }

    /** True if some index is about the column. */
    public boolean isIndexed(int i) {
        return indexed[i];
    }

    /** True if a foreign key may refer to the column. */
    public boolean isKey(int i) {
        return keys[i];
    }

    int length(int i) {
        return lengths[i];
    }

    boolean isByValue(int i) {
        return attributes[i].byValue();
    }

    boolean isPackable(int i) {
        return lengths[i] == Attribute.VARLENA && attributes[i].storage() != Attribute.PLAIN;
    }

    int align(int i, int offset) {
        return offset + alignMasks[i] & ~alignMasks[i];
    }

    /** Offset of the column after {@code t_hoff}, or -1. */
    int fixedOffset(int i) {
        return fixedOffsets[i];
    }
}
