package org.pgkernel.cluster;

import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.pgkernel.base.error.RefusedException;

/**
 * Reads a CSV file as PostgreSQL 15's COPY does with its defaults: fields between commas, quotes
 * anywhere in a field and doubled within them, an empty field without quotes is null, the first
 * line end says what all line ends are, a line {@code \.} ends the data. UTF-8.
 *
 * <p>The record at hand lies whole in {@link #bytes}, or, a field that had quotes to remove, in
 * {@link #unquoted}. Eight bytes are looked at in one step while none of them means anything.
 * Allocates only when a record is longer than all before. One thread. (PostgreSQL: CopyReadLineText
 * and CopyReadAttributesCSV, copyfromparse.c.)
 */
final class CsvReader implements AutoCloseable {
    /** What {@link #read} says at the end of the data. */
    static final int END = -1;

    private static final int FIRST_SIZE = 256 * 1024;
    private static final int MOST_SIZE = 1 << 30;
    private static final VarHandle WORD =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final long ONES = 0x0101010101010101L;
    private static final long HIGHS = 0x8080808080808080L;
    private static final long COMMAS = ',' * ONES;
    private static final long QUOTES = '"' * ONES;

    /** All control characters that matter are below. */
    private static final long CONTROLS = 14 * ONES;

    private enum LineEnd {
        UNKNOWN,
        NL,
        CR,
        CRNL
    }

    private final Path file;
    private final InputStream in;
    private byte[] bytes = new byte[FIRST_SIZE];
    private int next;
    private int limit;
    private boolean atEnd;
    private LineEnd lineEnd = LineEnd.UNKNOWN;
    private long line;
    private long nextLine = 1;

    private final int[] starts;
    private final int[] lengths;
    private final boolean[] nulls;
    private final boolean[] moved;
    private byte[] unquoted = new byte[256];
    private int unquotedEnd;
    private int fields;

    /** A byte of the record is not ASCII. */
    private boolean isWide;

    private final CharsetDecoder decoder = StandardCharsets.UTF_8.newDecoder();
    private CharBuffer decoded = CharBuffer.allocate(256);

    /**
     * @param most fields a record may have; what is more is an error of {@link #read}
     */
    CsvReader(Path file, int most) {
        this.file = file;
        starts = new int[most];
        lengths = new int[most];
        nulls = new boolean[most];
        moved = new boolean[most];
        try {
            in = Files.newInputStream(file);
        } catch (IOException e) {
            throw new RefusedException("the file cannot be opened: file=" + file, e);
        }
    }

    /**
     * Goes on to the next record.
     *
     * @return its fields, or {@link #END}
     * @throws RefusedException naming file and line
     */
    int read() {
        line = nextLine;
        for (; ; ) {
            if (next == limit && !fill()) {
                return END;
            }
            int end = parse();
            if (end >= 0) {
                next = end;
                return isEndMarker() ? END : fields;
            }
            fill();
        }
    }

    private boolean isEndMarker() {
        boolean ends =
                fields == 1
                        && lengths[0] == 2
                        && !moved[0]
                        && bytes[starts[0]] == '\\'
                        && bytes[starts[0] + 1] == '.';
        if (ends) {
            atEnd = true;
            next = limit;
        }
        return ends;
    }

    /** Reads on behind the record at hand, which moves to the front. @return false at the end */
    private boolean fill() {
        if (next > 0) {
            System.arraycopy(bytes, next, bytes, 0, limit - next);
            limit -= next;
            next = 0;
        } else if (limit == bytes.length) {
            if (limit == MOST_SIZE) {
                throw refused("a record is longer than 1 GB");
            }
            bytes = Arrays.copyOf(bytes, Math.min(limit * 2, MOST_SIZE));
        }
        try {
            int got = atEnd ? -1 : in.read(bytes, limit, bytes.length - limit);
            if (got < 0) {
                atEnd = true;
                return limit > 0;
            }
            limit += got;
            return true;
        } catch (IOException e) {
            throw new RefusedException("the file cannot be read: file=" + file, e);
        }
    }

    /**
     * Takes the record at {@link #next} apart.
     *
     * @return where the next one begins, or -1: it is not whole yet
     */
    private int parse() {
        fields = 0;
        unquotedEnd = 0;
        isWide = false;
        nextLine = line;
        int at = next;
        while (true) {
            int start = at;
            at = plainEnd(at);
            if (at == limit && !atEnd) {
                return -1;
            }
            int c = at == limit ? -1 : bytes[at];
            if (c == '"') {
                at = quoted(start, at);
                if (at < 0) {
                    return -1;
                }
                c = at == limit ? -1 : bytes[at];
            } else {
                field(start, at - start, false, at == start);
            }
            if (c == ',') {
                at++;
            } else {
                nextLine++;
                return c < 0 ? at : afterLine(at, c);
            }
        }
    }

    /**
     * @return the first byte from here on that ends a field or begins a quote, or the limit
     */
    private int plainEnd(int from) {
        byte[] all = bytes;
        int end = limit;
        int at = from;
        long wide = 0;
        for (; ; ) {
            while (at + Long.BYTES <= end) {
                long word = (long) WORD.get(all, at);
                long commas = word ^ COMMAS;
                long quotes = word ^ QUOTES;
                long hits =
                        ((word - CONTROLS) & ~word)
                                | ((commas - ONES) & ~commas)
                                | ((quotes - ONES) & ~quotes);
                hits &= HIGHS;
                if (hits != 0) {
                    int before = Long.numberOfTrailingZeros(hits) >>> 3;
                    wide |= word & ((1L << (before * 8)) - 1);
                    at += before;
                    break;
                }
                wide |= word;
                at += Long.BYTES;
            }
            while (at < end) {
                byte c = all[at];
                if (c == ',' || c == '"' || c == '\n' || c == '\r') {
                    isWide |= (wide & HIGHS) != 0;
                    return at;
                }
                if (c == 0) {
                    throw refused("invalid byte sequence for encoding \"UTF8\": 0x00");
                }
                wide |= c;
                at++;
                if (c >= 14) {
                    break; // on with whole words
                }
            }
            if (at >= end) {
                isWide |= (wide & HIGHS) != 0;
                return at;
            }
        }
    }

    /**
     * A field with quotes: {@code ab"c,""d"e} is {@code abc,"de}.
     *
     * @param quote where the first quote is
     * @return where the field ends, or -1: not whole yet
     */
    private int quoted(int start, int quote) {
        int to = unquotedEnd;
        keep(start, quote);
        int at = quote;
        while (at < limit && bytes[at] == '"') {
            int from = ++at;
            for (; ; ) {
                while (at < limit && bytes[at] != '"') {
                    byte c = bytes[at++];
                    isWide |= c < 0;
                    if (c == '\n' || c == '\r' && (at == limit || bytes[at] != '\n')) {
                        nextLine++;
                    } else if (c == 0) {
                        throw refused("invalid byte sequence for encoding \"UTF8\": 0x00");
                    }
                }
                if (at == limit) {
                    if (atEnd) {
                        throw refused("unterminated CSV quoted field");
                    }
                    return -1;
                }
                boolean doubled = at + 1 < limit && bytes[at + 1] == '"';
                if (at + 1 == limit && !atEnd) {
                    return -1;
                }
                keep(from, doubled ? at + 1 : at);
                at += doubled ? 2 : 1;
                from = at;
                if (!doubled) {
                    break;
                }
            }
            at = plainEnd(from);
            if (at == limit && !atEnd) {
                return -1;
            }
            keep(from, at);
        }
        field(to, unquotedEnd - to, true, false);
        return at;
    }

    private void keep(int from, int to) {
        int length = to - from;
        if (unquotedEnd + length > unquoted.length) {
            unquoted = Arrays.copyOf(unquoted, Math.max(unquoted.length * 2, unquotedEnd + length));
        }
        System.arraycopy(bytes, from, unquoted, unquotedEnd, length);
        unquotedEnd += length;
    }

    private void field(int start, int length, boolean isMoved, boolean isNull) {
        if (fields == starts.length) {
            throw refused("extra data after last expected column");
        }
        starts[fields] = start;
        lengths[fields] = length;
        moved[fields] = isMoved;
        nulls[fields++] = isNull;
    }

    /**
     * @return where the next line begins, or -1: not known yet
     */
    private int afterLine(int at, int c) {
        boolean isCr = c == '\r';
        if (isCr && lineEnd != LineEnd.CR && at + 1 == limit && !atEnd) {
            return -1;
        }
        boolean isCrNl = isCr && at + 1 < limit && bytes[at + 1] == '\n';
        if (lineEnd == LineEnd.UNKNOWN) {
            lineEnd = isCrNl ? LineEnd.CRNL : isCr ? LineEnd.CR : LineEnd.NL;
        }
        boolean fits =
                switch (lineEnd) {
                    case NL, UNKNOWN -> !isCr;
                    case CR -> isCr;
                    case CRNL -> isCrNl;
                };
        if (!fits) {
            throw refused("unquoted " + (isCr ? "carriage return" : "newline") + " found in data");
        }
        return at + (lineEnd == LineEnd.CRNL ? 2 : 1);
    }

    boolean isNull(int field) {
        return nulls[field];
    }

    /** The bytes that hold the field. */
    byte[] source(int field) {
        return moved[field] ? unquoted : bytes;
    }

    int start(int field) {
        return starts[field];
    }

    int length(int field) {
        return lengths[field];
    }

    /**
     * @throws RefusedException when a field is not UTF-8
     */
    void checkEncoding(int field) {
        if (!isWide) {
            return;
        }
        if (decoded.capacity() < lengths[field]) {
            decoded = CharBuffer.allocate(lengths[field]);
        }
        decoded.clear();
        try {
            decoder.reset();
            var result =
                    decoder.decode(
                            ByteBuffer.wrap(source(field), starts[field], lengths[field]),
                            decoded,
                            true);
            if (result.isError()) {
                result.throwException();
            }
        } catch (CharacterCodingException e) {
            throw refused("invalid byte sequence for encoding \"UTF8\"");
        }
    }

    String text(int field) {
        return new String(source(field), starts[field], lengths[field], StandardCharsets.UTF_8);
    }

    /** An error of the record at hand; the line is its first. */
    RefusedException refused(String what) {
        return new RefusedException(what + ": file=" + file + " line=" + line);
    }

    @Override
    public void close() {
        try {
            in.close();
        } catch (IOException e) {
            throw new RefusedException("the file cannot be closed: file=" + file, e);
        }
    }
}
