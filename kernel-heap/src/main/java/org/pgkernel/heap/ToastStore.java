package org.pgkernel.heap;

import java.util.function.IntSupplier;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.RefusedException;

/**
 * Long values: compressed and moved to the TOAST table when a row is stored, fetched when one is
 * read. One backend's. (PostgreSQL: heaptoast.c, toast_internals.c, detoast.c.)
 */
public final class ToastStore {
    /** The columns of every TOAST table. (PostgreSQL: create_toast_table, toasting.c.) */
    public static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(
                    Attribute.of("chunk_id", "oid"),
                    Attribute.of("chunk_seq", "int4"),
                    Attribute.of("chunk_data", "bytea").stored(Attribute.PLAIN));

    /** Deletes a row that this transaction may delete. */
    @FunctionalInterface
    interface Deleter {
        void delete(HeapRelation relation, long tid);
    }

    private static final int CHUNK_ID = 0;
    private static final int CHUNK_SEQ = 1;
    private static final int CHUNK_DATA = 2;

    private final HeapBackend backend;
    private final HeapInserter inserter;
    private final HeapFetch fetch;
    private final Detoaster detoaster = new Detoaster();
    private final RowValues chunk = new RowValues(COLUMNS);
    private final UnsafeBuffer stored = new UnsafeBuffer(0L, 0);
    private final IntSupplier valueIds = this::newValueId;
    private final ToastPlanner.ChunkSink chunks = this::store;
    private final ToastPlanner.ObsoleteValues obsolete = this::delete;
    private final ToastIndex.Source source = this::scan;

    /** The TOAST table that the call under way is about. */
    private HeapRelation toast;

    /** Where the last chunk was stored or found. */
    private long lastTid;

    private Deleter deleter;

    ToastStore(HeapBackend backend) {
        this.backend = backend;
        inserter = new HeapInserter(backend);
        fetch = new HeapFetch(backend);
    }

    /** Before the first value is deleted. */
    void deleter(Deleter deleter) {
        this.deleter = deleter;
    }

    /**
     * The row as it is to be stored, its long values compressed or out of line. No page is locked
     * by the caller.
     *
     * @param old the version that it replaces, or null: values that both share stay, those that
     *     only the old one had are deleted. Its values are in a pinned page
     * @return {@code row}, or another one that is good until the relation's next row
     */
    RowValues toStore(HeapRelation relation, RowValues row, RowValues old) {
        if (!ToastPlanner.needed(row) && (old == null || !old.hasExternal())) {
            return row;
        }
        RelationState state = backend.state(relation);
        if (state.planner == null) {
            state.planner = new ToastPlanner(relation.descriptor());
            state.stored = new RowValues(relation.descriptor());
        }
        RowValues planned = state.stored;
        planned.copyReferences(row);
        fetchOthers(relation, planned, old);
        toast = relation.toast();
        state.planner.plan(
                planned, old, toast == null ? 0 : toast.oid(), valueIds, chunks, obsolete);
        return planned;
    }

    /** A value that belongs to another row is copied from there, compressed as it is. */
    private void fetchOthers(HeapRelation relation, RowValues row, RowValues old) {
        for (int i = 0; i < row.descriptor().count(); i++) {
            if (row.isExternal(i)
                    && !(old != null && old.isExternal(i) && row.isSameExternal(old, i))) {
                DirectBuffer in = row.source(i);
                int at = row.offset(i);
                byte[] data = fetch(relation, in, at);
                stored.wrap(data);
                if (Varlena.isExternalCompressed(in, at)) {
                    row.setCompressed(i, stored, data.length);
                } else {
                    row.setBytes(i, data);
                }
            }
        }
    }

    /** One that no chunk in the table has. (PostgreSQL: GetNewOidWithIndex.) */
    private int newValueId() {
        int id;
        do {
            id = backend.objectIds.next();
        } while (toast.chunks().find(id, 0, source) != ToastIndex.NONE);
        lastTid = TupleId.INVALID;
        return id;
    }

    private void store(int valueId, int sequence, DirectBuffer data, int offset, int length) {
        chunk.clear();
        chunk.setNumber(CHUNK_ID, valueId);
        chunk.setNumber(CHUNK_SEQ, sequence);
        chunk.setBytes(CHUNK_DATA, data, offset, length);
        long tid = inserter.insert(toast, chunk);
        toast.chunks().added(valueId, sequence, tid, lastTid);
        lastTid = tid;
    }

    /**
     * A varlena's value without header, wherever and however it is stored.
     *
     * @param row deformed from the relation, its page pinned
     */
    public byte[] value(HeapRelation relation, RowValues row, int column) {
        DirectBuffer in = row.source(column);
        int at = row.offset(column);
        return row.isExternal(column)
                ? detoaster.value(in, at, fetch(relation, in, at))
                : detoaster.value(in, at);
    }

    /** The stored bytes of an external value. (PostgreSQL: heap_fetch_toast_slice.) */
    private byte[] fetch(HeapRelation relation, DirectBuffer pointer, int at) {
        checkTable(relation, pointer, at);
        int valueId = Varlena.valueId(pointer, at);
        toast = relation.toast();
        int size = Varlena.externalStoredSize(pointer, at);
        byte[] data = new byte[size];
        lastTid = TupleId.INVALID;
        try {
            int sequence = 0;
            for (int done = 0; done < size; sequence++) {
                done +=
                        chunk(
                                valueId,
                                sequence,
                                Math.min(ToastPlanner.CHUNK_SIZE, size - done),
                                data,
                                done);
            }
        } finally {
            fetch.close();
        }
        return data;
    }

    private static void checkTable(HeapRelation relation, DirectBuffer pointer, int at) {
        HeapRelation table = relation.toast();
        if (table == null || table.oid() != Varlena.toastRelation(pointer, at)) {
            throw new RefusedException(
                    "a value is in TOAST table "
                            + Integer.toUnsignedString(Varlena.toastRelation(pointer, at))
                            + ", which is not the table's own rel="
                            + relation);
        }
    }

    private int chunk(int valueId, int sequence, int expected, byte[] to, int at) {
        findOrFail(valueId, sequence);
        DirectBuffer in = chunk.source(CHUNK_DATA);
        int from = chunk.offset(CHUNK_DATA);
        int header = Varlena.headerSize(in, from);
        int length = Varlena.size(in, from) - header;
        if (length != expected || Varlena.isCompressed(in, from) || Varlena.isExternal(in, from)) {
            throw new DamagedDataException(
                    "unexpected chunk size "
                            + length
                            + " (expected "
                            + expected
                            + ") in chunk "
                            + sequence
                            + " for "
                            + describe(valueId));
        }
        in.getBytes(from + header, to, at, length);
        return length;
    }

    private void findOrFail(int valueId, int sequence) {
        if (!find(valueId, sequence)) {
            toast.chunks().forget();
            if (!find(valueId, sequence)) {
                throw new DamagedDataException(
                        "missing chunk number " + sequence + " for " + describe(valueId));
            }
        }
    }

    private String describe(int valueId) {
        return "toast value " + Integer.toUnsignedString(valueId) + " rel=" + toast;
    }

    /** Fetches the chunk into {@link #chunk}: behind the last one, or where the index says. */
    private boolean find(int valueId, int sequence) {
        return TupleId.isValid(lastTid) && isChunk(lastTid + 1, valueId, sequence)
                || isChunk(toast.chunks().find(valueId, sequence, source), valueId, sequence);
    }

    private boolean isChunk(long tid, int valueId, int sequence) {
        if (tid == ToastIndex.NONE || !fetch.fetch(toast, tid, HeapSnapshot.TOAST)) {
            return false;
        }
        fetch.tuple().read(chunk);
        boolean is =
                (int) chunk.number(CHUNK_ID) == valueId
                        && (int) chunk.number(CHUNK_SEQ) == sequence
                        && !chunk.isNull(CHUNK_DATA);
        if (is) {
            lastTid = tid;
        }
        return is;
    }

    /** All chunks of the table, in the order of the file. */
    private void scan(ToastIndex index) {
        int valueId = 0;
        int sequence = -1;
        long previous = TupleId.INVALID;
        RowValues row = new RowValues(COLUMNS);
        try (HeapScan scan = new HeapScan(backend)) {
            scan.begin(toast, HeapSnapshot.TOAST);
            while (scan.next()) {
                scan.tuple().read(row);
                int id = (int) row.number(CHUNK_ID);
                int number = (int) row.number(CHUNK_SEQ);
                boolean follows = id == valueId && number == sequence + 1;
                index.added(id, number, scan.tuple().tid(), follows ? previous : TupleId.INVALID);
                valueId = id;
                sequence = number;
                previous = scan.tuple().tid();
            }
        }
    }

    /**
     * Deletes the out-of-line values of a row that is deleted. (PostgreSQL: heap_toast_delete.)
     *
     * @param row deformed from the relation, its page pinned but not locked
     */
    void delete(HeapRelation relation, RowValues row) {
        toast = relation.toast();
        for (int i = 0; i < row.descriptor().count(); i++) {
            if (row.isExternal(i)) {
                DirectBuffer in = row.source(i);
                int at = row.offset(i);
                checkTable(relation, in, at);
                delete(Varlena.valueId(in, at), Varlena.externalStoredSize(in, at));
            }
        }
    }

    /** Whoever may delete the row may delete its chunks. (PostgreSQL: toast_delete_datum.) */
    private void delete(int valueId, int storedSize) {
        lastTid = TupleId.INVALID;
        try {
            int sequence = 0;
            for (int left = storedSize; left > 0; left -= ToastPlanner.CHUNK_SIZE) {
                findOrFail(valueId, sequence++);
                long tid = lastTid;
                fetch.close();
                deleter.delete(toast, tid);
            }
        } finally {
            fetch.close();
        }
        toast.chunks().deleted();
    }
}
