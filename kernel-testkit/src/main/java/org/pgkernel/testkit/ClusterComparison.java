package org.pgkernel.testkit;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.Page;

/**
 * Compares two data directories byte for byte: every file below {@code base}, {@code global} and
 * the tablespaces (all forks and segments, {@code pg_filenode.map}, {@code PG_VERSION}), every
 * SLRU, and the two-phase state files.
 *
 * <p>A file of pages that ends with a piece of one is reported also when both sides have it (C09).
 *
 * <p>Nothing is masked: LSN, checksum, hint bits and hole count. Left out are files that are no
 * part of what recovery restores: {@code pg_control} (compared field by field, see {@code
 * ControlFile.describeDifferences}), {@code pg_internal.init} (a cache that every server start
 * removes), {@code pg_notify} (emptied at every start), and temporary files. The one exception that
 * can be switched on is the free space map under checksums: its pages are changed without WAL, and
 * may be torn.
 */
public final class ClusterComparison {
    /** Directories of 8 KB pages outside the relations. (PostgreSQL: SimpleLruInit's callers.) */
    static final List<String> SLRUS =
            List.of(
                    "pg_xact",
                    "pg_subtrans",
                    "pg_multixact/offsets",
                    "pg_multixact/members",
                    "pg_commit_ts",
                    "pg_serial");

    private static final int KEPT_DIFFERENCES = 200;
    private static final Pattern FSM = Pattern.compile("\\d+_fsm(\\.\\d+)?");

    /** Files of pages: relations', by their numbers, and SLRU segments, in hexadecimal. */
    private static final Pattern PAGES =
            Pattern.compile(
                    "(base|global|pg_tblspc)/(.*/)?\\d+(_[a-z]+)?(\\.\\d+)?|pg_(?!twophase).*/[0-9A-F]+");

    private static final int CHUNK = 128 * Page.SIZE;

    /**
     * One place where the two differ.
     *
     * @param file relative to the data directory
     * @param block page number within the file, -1 when the file as a whole differs
     * @param offset first differing byte within the page, -1 when the file as a whole differs
     * @param leftLsn the page's LSN on the left, 0 when there is none
     * @param rightLsn the same on the right
     * @param reason a few words
     */
    public record Difference(
            String file, long block, int offset, long leftLsn, long rightLsn, String reason) {
        @Override
        public String toString() {
            return block < 0
                    ? file + ": " + reason
                    : file
                            + " block="
                            + block
                            + " offset="
                            + offset
                            + " lsn="
                            + Lsn.format(leftLsn)
                            + " vs "
                            + Lsn.format(rightLsn)
                            + ": "
                            + reason;
        }
    }

    /**
     * What a comparison found.
     *
     * @param differences the first 200
     * @param differenceCount all of them
     * @param pages pages compared, SLRU pages included
     * @param files files compared
     */
    public record Result(
            List<Difference> differences, long differenceCount, long pages, int files) {
        public boolean equal() {
            return differenceCount == 0;
        }

        /** One line a difference, and a sum. */
        public String describe() {
            StringBuilder text = new StringBuilder();
            differences.forEach(difference -> text.append(difference).append('\n'));
            return text.append(differenceCount)
                    .append(" differences in ")
                    .append(pages)
                    .append(" pages of ")
                    .append(files)
                    .append(" files")
                    .toString();
        }
    }

    private final Path left;
    private final Path right;
    private final boolean skipFreeSpaceMaps;
    private final List<Difference> differences = new ArrayList<>();
    private final ByteBuffer leftBytes = ByteBuffer.allocateDirect(CHUNK);
    private final ByteBuffer rightBytes = ByteBuffer.allocateDirect(CHUNK);
    private final UnsafeBuffer leftPage = new UnsafeBuffer(0, 0);
    private final UnsafeBuffer rightPage = new UnsafeBuffer(0, 0);
    private long differenceCount;
    private long pages;
    private int files;

    private ClusterComparison(Path left, Path right, boolean skipFreeSpaceMaps) {
        this.left = left;
        this.right = right;
        this.skipFreeSpaceMaps = skipFreeSpaceMaps;
    }

    /** Compares everything. Neither directory may have a server running. */
    public static Result compare(Path left, Path right) {
        return compare(left, right, false);
    }

    /**
     * @param skipFreeSpaceMaps leave out FSM forks; meant for clusters with checksums only
     */
    public static Result compare(Path left, Path right, boolean skipFreeSpaceMaps) {
        ClusterComparison comparison = new ClusterComparison(left, right, skipFreeSpaceMaps);
        try {
            comparison.run();
        } catch (IOException e) {
            throw new PostgresServerException(
                    "cannot compare: left=" + left + " right=" + right, e);
        }
        return new Result(
                List.copyOf(comparison.differences),
                comparison.differenceCount,
                comparison.pages,
                comparison.files);
    }

    /**
     * The differing page's two headers and byte ranges, then all items of both: for a person who
     * looks for the reason.
     */
    public static String explain(Path left, Path right, Difference difference) {
        if (difference.block() < 0) {
            return difference.toString();
        }
        try {
            UnsafeBuffer leftPage =
                    new UnsafeBuffer(page(left.resolve(difference.file()), difference.block()));
            UnsafeBuffer rightPage =
                    new UnsafeBuffer(page(right.resolve(difference.file()), difference.block()));
            StringBuilder text =
                    new StringBuilder()
                            .append(difference)
                            .append('\n')
                            .append(PageExplanation.dump(leftPage, rightPage, Page.SIZE));
            if (Page.lower(leftPage) > Page.HEADER_SIZE
                    && Page.lower(leftPage) <= Page.upper(leftPage)
                    && Page.upper(leftPage) <= Page.SIZE) {
                text.append("left items: ")
                        .append(PageExplanation.items(leftPage))
                        .append("right items: ")
                        .append(PageExplanation.items(rightPage));
            }
            return text.toString();
        } catch (IOException e) {
            throw new PostgresServerException(
                    "cannot read a page: file="
                            + difference.file()
                            + " block="
                            + difference.block(),
                    e);
        }
    }

    private static byte[] page(Path file, long block) throws IOException {
        ByteBuffer page = ByteBuffer.allocate(Page.SIZE);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            while (page.hasRemaining()
                    && channel.read(page, block * Page.SIZE + page.position()) > 0) {}
        }
        return page.array();
    }

    private void run() throws IOException {
        TreeSet<String> names = new TreeSet<>();
        for (Path root : List.of(left, right)) {
            collect(root, "base", names);
            collect(root, "global", names);
            collect(root, "pg_tblspc", names);
            collect(root, "pg_twophase", names);
            for (String slru : SLRUS) {
                collect(root, slru, names);
            }
        }
        for (String name : names) {
            compareFile(name);
        }
    }

    private void collect(Path root, String name, TreeSet<String> names) throws IOException {
        Path path = root.resolve(name);
        if (Files.isDirectory(path)) {
            if (path.getFileName().toString().equals("pgsql_tmp")) {
                return;
            }
            try (Stream<Path> entries = Files.list(path)) {
                for (Path entry : (Iterable<Path>) entries::iterator) {
                    collect(root, name + "/" + entry.getFileName(), names);
                }
            }
            if (name.startsWith("base/")) {
                // An empty database directory is a fact too.
                names.add(name + "/");
            }
        } else if (isCompared(path.getFileName().toString())) {
            if (Files.exists(path)) {
                names.add(name);
            }
        }
    }

    private boolean isCompared(String file) {
        return !file.equals("pg_control")
                && !file.startsWith("pg_internal.init")
                && !(skipFreeSpaceMaps && FSM.matcher(file).matches());
    }

    private void compareFile(String name) throws IOException {
        Path leftFile = left.resolve(name);
        Path rightFile = right.resolve(name);
        if (!Files.exists(leftFile) || !Files.exists(rightFile)) {
            Path there = Files.exists(leftFile) ? leftFile : rightFile;
            String what = name.endsWith("/") ? "directory" : Files.size(there) + " bytes";
            report(
                    new Difference(
                            name,
                            -1,
                            -1,
                            0,
                            0,
                            "only on the " + (there == leftFile ? "left" : "right") + ", " + what));
            return;
        }
        if (name.endsWith("/")) {
            return;
        }
        files++;
        try (FileChannel leftChannel = FileChannel.open(leftFile, StandardOpenOption.READ);
                FileChannel rightChannel = FileChannel.open(rightFile, StandardOpenOption.READ)) {
            long leftSize = leftChannel.size();
            long rightSize = rightChannel.size();
            if (leftSize != rightSize) {
                report(
                        new Difference(
                                name, -1, -1, 0, 0, "length " + leftSize + " vs " + rightSize));
            } else if (leftSize % Page.SIZE != 0 && PAGES.matcher(name).matches()) {
                report(
                        new Difference(
                                name,
                                -1,
                                -1,
                                0,
                                0,
                                "length " + leftSize + " is no multiple of " + Page.SIZE));
            }
            long common = Math.min(leftSize, rightSize);
            for (long at = 0; at < common; at += CHUNK) {
                int length = (int) Math.min(CHUNK, common - at);
                fill(leftChannel, leftBytes, at, length);
                fill(rightChannel, rightBytes, at, length);
                pages += (length + Page.SIZE - 1) / Page.SIZE;
                if (leftBytes.mismatch(rightBytes) >= 0) {
                    comparePages(name, at, length);
                }
            }
        }
    }

    private void comparePages(String name, long at, int length) {
        for (int from = 0; from < length; from += Page.SIZE) {
            int pageLength = Math.min(Page.SIZE, length - from);
            int mismatch =
                    leftBytes.slice(from, pageLength).mismatch(rightBytes.slice(from, pageLength));
            if (mismatch < 0) {
                continue;
            }
            leftPage.wrap(leftBytes, from, pageLength);
            rightPage.wrap(rightBytes, from, pageLength);
            boolean relation =
                    !SLRUS.contains(name.substring(0, name.lastIndexOf('/')))
                            && pageLength == Page.SIZE;
            report(
                    new Difference(
                            name,
                            (at + from) / Page.SIZE,
                            mismatch,
                            relation ? Page.lsn(leftPage) : 0,
                            relation ? Page.lsn(rightPage) : 0,
                            relation
                                    ? PageExplanation.reason(leftPage, rightPage, pageLength)
                                    : String.format(
                                            "%02x vs %02x",
                                            leftPage.getByte(mismatch),
                                            rightPage.getByte(mismatch))));
        }
    }

    private void report(Difference difference) {
        differenceCount++;
        if (differences.size() < KEPT_DIFFERENCES) {
            differences.add(difference);
        }
    }

    private static void fill(FileChannel channel, ByteBuffer buffer, long at, int length)
            throws IOException {
        buffer.clear().limit(length);
        while (buffer.hasRemaining()) {
            if (channel.read(buffer, at + buffer.position()) <= 0) {
                throw new IOException("a file became shorter while it was compared");
            }
        }
        buffer.flip();
    }
}
