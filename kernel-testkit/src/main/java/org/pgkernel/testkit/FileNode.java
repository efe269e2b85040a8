package org.pgkernel.testkit;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import org.agrona.BufferUtil;
import org.agrona.UnsafeApi;

/**
 * A file of a {@link SimulatedDisk}: its bytes as programs see them, as the medium has them, and
 * the unsynced changes that lie between. Guarded by the disk's lock.
 *
 * <p>Bytes lie in chunks of 8 KB. A chunk that was put anywhere never changes again, so that
 * states, changes and restarted disks share it; a write puts a new one in its place. Null is a
 * chunk of zeros. Behind the end of a file all bytes are zero.
 */
final class FileNode implements SimulatedNode {
    static final int SECTOR = 512;
    static final int CHUNK = 8192;

    private static final int SECTORS = CHUNK / SECTOR;
    private static final int ALL_SECTORS = (1 << SECTORS) - 1;

    /** Unsynced changes past which the older half is written out. */
    private static final int WRITE_OUT = 4096;

    private static final byte[] ZEROS = new byte[CHUNK];
    private static final byte[][] NOTHING = new byte[0][];

    /**
     * An unsynced change: new sectors of a chunk, or a new length.
     *
     * @param chunk its number, -1 for a length
     * @param content the whole chunk as it was seen after the write; null for zeros
     * @param sectors a bit for each sector that the write touched
     * @param size the new length
     * @param shrinks whether the length is a cut
     * @param order of the length in the journal
     */
    private record Change(
            int chunk, byte[] content, int sectors, long size, boolean shrinks, long order) {
        boolean isLength() {
            return chunk < 0;
        }
    }

    private final long id;
    private final Journal journal;
    private byte[][] seen;
    private long size;
    private byte[][] medium;
    private long mediumSize;
    private final List<Change> unsynced = new ArrayList<>();

    /** Sectors that take space, and how many. */
    private final BitSet allocated = new BitSet();

    private long allocatedSectors;

    /** Handles that are open. */
    int handles;

    /** Names that programs see. */
    int names;

    FileNode(long id, Journal journal) {
        this(id, journal, NOTHING, 0);
    }

    /** A file whose bytes are on the medium; takes the array over. */
    private FileNode(long id, Journal journal, byte[][] chunks, long size) {
        this.id = id;
        this.journal = journal;
        this.seen = chunks.clone();
        this.size = size;
        this.medium = chunks;
        this.mediumSize = size;
        for (int chunk = 0; chunk < chunks.length; chunk++) {
            if (chunks[chunk] != null) {
                allocated.set(chunk * SECTORS, (chunk + 1) * SECTORS);
                allocatedSectors += SECTORS;
            }
        }
    }

    @Override
    public long id() {
        return id;
    }

    long size() {
        return size;
    }

    /** Sectors that take space. */
    long allocatedSectors() {
        return allocatedSectors;
    }

    int unsyncedChanges() {
        return unsynced.size();
    }

    int read(long address, int length, long offset) {
        int count = (int) Math.clamp(size - offset, 0, length);
        for (int done = 0; done < count; ) {
            int from = (int) ((offset + done) % CHUNK);
            int part = Math.min(count - done, CHUNK - from);
            byte[] chunk = chunk(seen, (int) ((offset + done) / CHUNK));
            UnsafeApi.copyMemory(
                    chunk == null ? ZEROS : chunk,
                    (long) BufferUtil.ARRAY_BASE_OFFSET + from,
                    null,
                    address + done,
                    part);
            done += part;
        }
        return count;
    }

    /**
     * How much of a write fits when only {@code free} more sectors can be had; counts the sectors
     * it takes.
     *
     * @return bytes that fit
     */
    int allocate(int length, long offset, long free) {
        int first = Math.toIntExact(offset / SECTOR);
        int end = Math.toIntExact((offset + length + SECTOR - 1) / SECTOR);
        long taken = 0;
        for (int sector = allocated.nextClearBit(first);
                sector < end;
                sector = allocated.nextClearBit(sector + 1)) {
            if (taken == free) {
                return (int) Math.max(0, (long) sector * SECTOR - offset);
            }
            allocated.set(sector);
            allocatedSectors++;
            taken++;
        }
        return length;
    }

    void write(long address, int length, long offset) {
        if (length == 0) {
            return;
        }
        for (int done = 0; done < length; ) {
            int from = (int) ((offset + done) % CHUNK);
            int part = Math.min(length - done, CHUNK - from);
            put((int) ((offset + done) / CHUNK), from, part, address + done);
            done += part;
        }
        if (offset + length > size) {
            resize(offset + length);
        }
        if (unsynced.size() > WRITE_OUT) {
            writeOutOlderHalf();
        }
    }

    void truncate(long newSize) {
        if (newSize < size) {
            seen = cut(seen, newSize);
            int end = Math.toIntExact((newSize + SECTOR - 1) / SECTOR);
            allocated.clear(end, Math.max(allocated.length(), end));
            allocatedSectors = allocated.cardinality();
        }
        if (newSize != size) {
            resize(newSize);
        }
    }

    /** Everything reaches the medium (SD-1). */
    void sync() {
        land(unsynced.size());
        assert mediumSize == size;
    }

    /**
     * A sync fails: some sectors have landed, the others are dropped and count as clean; some of
     * the chunks concerned are thrown out, so that reads give what is on the medium.
     */
    void syncFails(long seed) {
        Landing landing = Landing.of(seed, id, unsynced.size(), Long.MAX_VALUE);
        Found found = found(landing);
        BitSet touched = new BitSet();
        for (Change change : unsynced) {
            if (change.isLength()) {
                journal.synced(change.order);
            } else {
                touched.set(change.chunk);
            }
        }
        medium = found.chunks;
        mediumSize = found.size;
        assert mediumSize == size;
        unsynced.clear();
        Chance chance = new Chance(seed, ~id);
        for (int chunk = touched.nextSetBit(0); chunk >= 0; chunk = touched.nextSetBit(chunk + 1)) {
            if (seed == SimulatedDisk.LOSE_ALL || chance.next(2) == 0) {
                seen = set(seen, chunk, chunk(medium, chunk));
            }
        }
    }

    /** The file as a crash leaves it, for another disk; this one stays as it is. */
    FileNode afterCrash(Landing landing, Journal ofOtherDisk) {
        Found found = found(landing);
        return new FileNode(id, ofOtherDisk, found.chunks, found.size);
    }

    /** The bytes as programs see them. */
    byte[] content() {
        byte[] content = new byte[Math.toIntExact(size)];
        for (int chunk = 0; chunk * CHUNK < content.length; chunk++) {
            byte[] from = chunk(seen, chunk);
            if (from != null) {
                int part = Math.min(CHUNK, content.length - chunk * CHUNK);
                System.arraycopy(from, 0, content, chunk * CHUNK, part);
            }
        }
        return content;
    }

    private record Found(byte[][] chunks, long size) {}

    private Found found(Landing landing) {
        byte[][] chunks = medium.clone();
        long length = mediumSize;
        boolean lengthsLand = true;
        for (Change change : unsynced) {
            if (!change.isLength()) {
                int sectors = change.sectors & landing.sectors();
                if (sectors != 0) {
                    chunks = merge(chunks, change.chunk, change.content, sectors);
                }
                continue;
            }
            lengthsLand &= landing.lands(change.order);
            if (lengthsLand) {
                chunks = change.shrinks ? cut(chunks, change.size) : chunks;
                length = change.size;
            } else if (change.shrinks) {
                // What was written behind a cut lies where the old bytes still are.
                break;
            }
        }
        return new Found(cut(chunks, length), length);
    }

    private void put(int number, int from, int part, long address) {
        byte[] chunk = new byte[CHUNK];
        byte[] before = chunk(seen, number);
        if (part < CHUNK && before != null) {
            System.arraycopy(before, 0, chunk, 0, CHUNK);
        }
        UnsafeApi.copyMemory(
                null, address, chunk, (long) BufferUtil.ARRAY_BASE_OFFSET + from, part);
        if (Arrays.equals(chunk, ZEROS)) {
            chunk = null;
        }
        seen = set(seen, number, chunk);
        int first = from / SECTOR;
        int end = (from + part + SECTOR - 1) / SECTOR;
        int sectors = (1 << end) - (1 << first);
        unsynced.add(new Change(number, chunk, sectors, 0, false, 0));
    }

    private void resize(long newSize) {
        unsynced.add(new Change(-1, null, 0, newSize, newSize < size, journal.next()));
        size = newSize;
    }

    private void writeOutOlderHalf() {
        land(WRITE_OUT / 2);
    }

    /** The first changes reach the medium. */
    private void land(int count) {
        List<Change> first = unsynced.subList(0, count);
        for (Change change : first) {
            if (!change.isLength()) {
                medium = merge(medium, change.chunk, change.content, change.sectors);
                continue;
            }
            medium = change.shrinks ? cut(medium, change.size) : medium;
            mediumSize = change.size;
            journal.synced(change.order);
        }
        first.clear();
    }

    private static byte[] chunk(byte[][] chunks, int number) {
        return number < chunks.length ? chunks[number] : null;
    }

    /** Puts a chunk in its place. @return the array, a longer one when need be */
    private static byte[][] set(byte[][] chunks, int number, byte[] chunk) {
        byte[][] result = chunks;
        if (number >= chunks.length) {
            if (chunk == null) {
                return chunks;
            }
            result = Arrays.copyOf(chunks, Math.max(number + 1, chunks.length * 3 / 2));
        }
        result[number] = chunk;
        return result;
    }

    private static byte[][] merge(byte[][] chunks, int number, byte[] content, int sectors) {
        byte[] before = chunk(chunks, number);
        if (sectors == ALL_SECTORS || before == content) {
            return set(chunks, number, content);
        }
        byte[] merged = before == null ? new byte[CHUNK] : before.clone();
        byte[] from = content == null ? ZEROS : content;
        for (int sector = 0; sector < SECTORS; sector++) {
            if ((sectors & 1 << sector) != 0) {
                System.arraycopy(from, sector * SECTOR, merged, sector * SECTOR, SECTOR);
            }
        }
        return set(chunks, number, merged);
    }

    /** Makes all bytes from {@code size} on zeros. */
    private static byte[][] cut(byte[][] chunks, long size) {
        int last = Math.toIntExact(size / CHUNK);
        int kept = (int) (size % CHUNK);
        for (int number = last + (kept == 0 ? 0 : 1); number < chunks.length; number++) {
            chunks[number] = null;
        }
        if (kept != 0 && chunk(chunks, last) != null) {
            byte[] shorter = new byte[CHUNK];
            System.arraycopy(chunks[last], 0, shorter, 0, kept);
            chunks[last] = shorter;
        }
        return chunks;
    }
}
