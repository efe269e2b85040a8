package org.pgkernel.smgr;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.function.Consumer;

/**
 * Relation to handle, open addressing with linear probing over a power of two of slots, at most
 * half of them taken. {@link #find} takes no lock and allocates nothing; everything that changes
 * the table is called under the {@link StorageManager}'s monitor.
 *
 * <p>A reader that overlaps a change may miss an entry (it then asks again under the monitor) but
 * never meets a wrong one: slots go null, entry, {@link #REMOVED}, entry, each published whole, and
 * a grown array is published after it is filled.
 */
final class RelationTable {
    private static final VarHandle SLOT = MethodHandles.arrayElementVarHandle(SmgrRelation[].class);

    /** Stands where an entry was, so that probes go on past it. No relation has file number 0. */
    private static final SmgrRelation REMOVED =
            new SmgrRelation(null, 0, 0, 0, SmgrRelation.SHARED, RememberedSize::new);

    private volatile SmgrRelation[] slots = new SmgrRelation[256];

    /** Entries, and entries plus removed marks; guarded by the manager's monitor. */
    private int size;

    private int used;

    /** The handle, or null. Any thread, no lock. */
    SmgrRelation find(int spcOid, int dbOid, int relNumber, int backend) {
        SmgrRelation[] table = slots;
        int mask = table.length - 1;
        int i = hash(spcOid, dbOid, relNumber) & mask;
        SmgrRelation entry;
        while ((entry = (SmgrRelation) SLOT.getAcquire(table, i)) != null) {
            if (entry.is(spcOid, dbOid, relNumber, backend) && entry != REMOVED) {
                return entry;
            }
            i = i + 1 & mask;
        }
        return null;
    }

    int size() {
        return size;
    }

    /** Enters a handle that {@link #find} does not know. */
    void add(SmgrRelation relation) {
        if (2 * (used + 1) > slots.length) {
            rebuild();
        }
        put(slots, relation);
        size++;
        used++;
    }

    /** Takes this very handle out. @return false when it was not in */
    boolean remove(SmgrRelation relation) {
        SmgrRelation[] table = slots;
        int mask = table.length - 1;
        int i = relation.hash() & mask;
        while (table[i] != null) {
            if (table[i] == relation) {
                SLOT.setRelease(table, i, REMOVED);
                size--;
                return true;
            }
            i = i + 1 & mask;
        }
        return false;
    }

    void forEach(Consumer<SmgrRelation> action) {
        for (SmgrRelation entry : slots) {
            if (entry != null && entry != REMOVED) {
                action.accept(entry);
            }
        }
    }

    private void rebuild() {
        int length = 256;
        while (length < 4 * (size + 1)) {
            length *= 2;
        }
        SmgrRelation[] table = new SmgrRelation[length];
        forEach(relation -> put(table, relation));
        used = size;
        slots = table;
    }

    private static void put(SmgrRelation[] table, SmgrRelation relation) {
        int mask = table.length - 1;
        int i = relation.hash() & mask;
        while (table[i] != null) {
            i = i + 1 & mask;
        }
        SLOT.setRelease(table, i, relation);
    }

    static int hash(int spcOid, int dbOid, int relNumber) {
        long h =
                relNumber * 0x9E3779B97F4A7C15L
                        ^ (dbOid * 0xC2B2AE3D27D4EB4FL + spcOid) * 0x165667B19E3779F9L;
        return (int) (h >>> 32) ^ (int) (h >>> 15);
    }
}
