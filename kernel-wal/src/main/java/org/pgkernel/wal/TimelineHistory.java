package org.pgkernel.wal;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.agrona.BufferUtil;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.RefusedException;

/**
 * The timelines that lead to the present one. A history file has one line for each ancestor, oldest
 * first: its id, the position at which it was left, and why, separated by tabs; lines begun by
 * {@code #} are comments. Immutable. (PostgreSQL: timeline.c.)
 */
public final class TimelineHistory {
    /** No real history comes near; more is damage, and is not read. */
    private static final int MAX_FILE_SIZE = 1 << 22;

    /**
     * @param timeline unsigned id
     * @param begin first position of it, inclusive
     * @param end first position past it; 0 for the newest
     */
    public record Entry(int timeline, long begin, long end) {}

    /** Oldest first, without gaps, never empty. */
    private final List<Entry> entries;

    private TimelineHistory(List<Entry> entries) {
        this.entries = List.copyOf(entries);
    }

    /** A history of one timeline. */
    public static TimelineHistory of(int timeline) {
        return new TimelineHistory(List.of(new Entry(timeline, 0, 0)));
    }

    /**
     * Reads {@code pg_wal/XXXXXXXX.history}; timeline 1 needs none, and a timeline without a file
     * has no ancestors. (PostgreSQL: readTimeLineHistory.)
     *
     * @throws DamagedDataException when the file is not a history that could lead to {@code
     *     timeline}
     */
    public static TimelineHistory read(Disk disk, String walDirectory, int timeline) {
        if (timeline == 1) {
            return of(timeline);
        }
        String path = path(walDirectory, timeline);
        byte[] content = content(disk, path);
        return content == null
                ? of(timeline)
                : parse(new String(content, StandardCharsets.ISO_8859_1), timeline, path);
    }

    /** The file's name in pg_wal. (PostgreSQL: TLHistoryFileName.) */
    public static String fileName(int timeline) {
        return String.format("%08X.history", timeline);
    }

    /** The next id for which no history file exists. (PostgreSQL: findNewestTimeLine + 1.) */
    public static int nextFree(Disk disk, String walDirectory, int timeline) {
        int next = timeline + 1;
        while (disk.exists(path(walDirectory, next))) {
            next++;
        }
        return next;
    }

    /**
     * Writes the history file of {@code newTimeline}, which leaves this one at {@code switchPoint};
     * durable on return. (PostgreSQL: writeTimeLineHistory.)
     *
     * @throws RefusedException when the new timeline is not newer, or has a history already
     */
    public void write(
            Disk disk, String walDirectory, int newTimeline, long switchPoint, String reason) {
        String path = path(walDirectory, newTimeline);
        if (Integer.compareUnsigned(newTimeline, newest()) <= 0) {
            throw new RefusedException(
                    "the new timeline "
                            + Integer.toUnsignedString(newTimeline)
                            + " is not newer than "
                            + Integer.toUnsignedString(newest())
                            + " file="
                            + path);
        }
        if (disk.exists(path)) {
            throw new RefusedException(
                    "timeline "
                            + Integer.toUnsignedString(newTimeline)
                            + " has a history already file="
                            + path);
        }
        byte[] parent = newest() == 1 ? null : content(disk, path(walDirectory, newest()));
        // The parent's lines go over as they are; a line break before ours, should its last one
        // lack it.
        String line =
                (parent == null ? "" : "\n")
                        + Integer.toUnsignedString(newest())
                        + "\t"
                        + Lsn.format(switchPoint)
                        + "\t"
                        + reason.replace('\n', ' ').replace('\r', ' ')
                        + "\n";
        byte[] own = line.getBytes(StandardCharsets.UTF_8);
        ByteBuffer bytes =
                ByteBuffer.allocateDirect((parent == null ? 0 : parent.length) + own.length);
        if (parent != null) {
            bytes.put(parent);
        }
        bytes.put(own);
        DurableFile.install(
                disk,
                walDirectory,
                path,
                file -> file.write(BufferUtil.address(bytes), bytes.capacity(), 0));
    }

    /** The timeline that owns the byte at {@code lsn}. (PostgreSQL: tliOfPointInHistory.) */
    public int timelineAt(long lsn) {
        int i = entries.size() - 1;
        while (i > 0 && Lsn.before(lsn, entries.get(i).begin())) {
            i--;
        }
        return entries.get(i).timeline();
    }

    public int newest() {
        return entries.get(entries.size() - 1).timeline();
    }

    /** Oldest first. */
    public List<Entry> entries() {
        return entries;
    }

    private static String path(String walDirectory, int timeline) {
        return walDirectory + "/" + fileName(timeline);
    }

    /** The file's bytes, null when there is no file. */
    private static byte[] content(Disk disk, String path) {
        try (DiskFile file = disk.openReadOnly(path)) {
            if (file == null) {
                return null;
            }
            long size = file.size();
            if (size > MAX_FILE_SIZE) {
                throw new DamagedDataException(
                        "a timeline history of "
                                + size
                                + " bytes is too long to be one file="
                                + path);
            }
            ByteBuffer bytes = ByteBuffer.allocateDirect((int) size);
            int read = size == 0 ? 0 : file.read(BufferUtil.address(bytes), (int) size, 0);
            byte[] content = new byte[read];
            bytes.get(0, content);
            return content;
        }
    }

    private static TimelineHistory parse(String text, int timeline, String path) {
        List<Entry> entries = new ArrayList<>();
        long begin = 0;
        long last = 0;
        for (String line : text.split("\n")) {
            String trimmed = line.strip();
            if (trimmed.isEmpty() || trimmed.charAt(0) == '#') {
                continue;
            }
            String[] fields = trimmed.split("\\s+", 3);
            long id;
            long end;
            try {
                id = Long.parseLong(fields[0]);
                end = fields.length > 1 ? Lsn.parse(fields[1]) : 0;
            } catch (IllegalArgumentException e) {
                throw damaged("is no timeline and switch point", line, path);
            }
            if (fields.length < 2) {
                throw damaged("has no switch point", line, path);
            }
            if (id <= last || id >= Integer.toUnsignedLong(timeline)) {
                throw damaged("breaks the rising order of timelines", line, path);
            }
            if (Lsn.before(end, begin)) {
                throw damaged("leaves a timeline before it began", line, path);
            }
            entries.add(new Entry((int) id, begin, end));
            begin = end;
            last = id;
        }
        entries.add(new Entry(timeline, begin, 0));
        return new TimelineHistory(entries);
    }

    private static DamagedDataException damaged(String what, String line, String path) {
        String shown = line.length() > 80 ? line.substring(0, 80) : line;
        StringBuilder printable = new StringBuilder(shown.length());
        for (int i = 0; i < shown.length(); i++) {
            char c = shown.charAt(i);
            printable.append(c >= ' ' && c < 127 || c == '\t' ? c : '?');
        }
        return new DamagedDataException(
                "the timeline history's line \"" + printable + "\" " + what + " file=" + path);
    }
}
