package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Function;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;

/**
 * One fork in a small pool beside a model of it, a list of page versions: it is read in runs,
 * changed, and grown by several pages, while the disk is full, refuses blocks, or spoils them.
 * After each step nothing is pinned, the size is the model's, and the pool's invariants hold; every
 * page read is the model's.
 */
final class GrowingForkRun implements AutoCloseable {
    static final int SEGMENT = 8;
    private static final int MOST_BLOCKS = 70;
    private static final int ZEROS = -1;
    private static final ForkNumber MAIN = ForkNumber.MAIN;

    enum Kind {
        READ_MANY,
        READ_MANY_AGAIN,
        CHANGE,
        EXTEND,
        EXTEND_ON_A_FULL_DISK,
        READ_A_REFUSED_BLOCK,
        READ_A_DAMAGED_BLOCK,
        READ_PAST_THE_END,
        READ_WHILE_NO_VICTIM_CAN_BE_WRITTEN,
        TRUNCATE,
        STRAY_ZERO_PAGE,
        FLUSH,
        FORGET_SIZES,
        PREFETCH
    }

    /**
     * @param where picks a block
     * @param count blocks, 1 to 12
     */
    record Step(Kind kind, int where, int count) {}

    static Arbitrary<List<Step>> steps() {
        return Combinators.combine(
                        Arbitraries.of(Kind.class),
                        Arbitraries.integers().between(0, 10_000),
                        Arbitraries.integers().between(1, 12))
                .as(Step::new)
                .list()
                .ofMinSize(5)
                .ofMaxSize(50);
    }

    static List<Step> random(long seed) {
        Random random = new Random(seed);
        List<Step> steps = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            Kind kind = Kind.values()[random.nextInt(Kind.values().length)];
            steps.add(new Step(kind, random.nextInt(10_000), 1 + random.nextInt(12)));
        }
        return steps;
    }

    final PoolFixture f;
    private final SmgrRelation r;
    private final VectoredReader reader;
    private final RelationExtension extension;
    private final int[] buffers = new int[16];
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);

    /** A version for each block, or {@link #ZEROS}. */
    private final List<Integer> model = new ArrayList<>();

    private int versions;

    GrowingForkRun(
            Path directory,
            SizePolicy policy,
            int nbuffers,
            Function<BufferPool, VectoredReader> readers,
            Function<BufferPool, RelationExtension> extensions) {
        f =
                new PoolFixture(directory, false, policy, SEGMENT)
                        .pool(nbuffers, true, DropStrategy.ADAPTIVE);
        r = f.create(1, MAIN, 0);
        reader = readers.apply(f.pool);
        extension = extensions.apply(f.pool);
    }

    static VectoredReader reader(BufferPool pool) {
        return new VectoredReader(pool.allocator, pool.io);
    }

    static RelationExtension extension(BufferPool pool) {
        return pool.extension;
    }

    void run(List<Step> steps) {
        for (Step step : steps) {
            apply(step);
            assertEquals(0, f.pool.pinnedBuffers(), () -> "pins left by " + step);
            PoolInspection.check(f.pool);
            assertEquals(model.size(), r.nblocks(MAIN), () -> "size after " + step);
        }
        finish();
    }

    private void apply(Step step) {
        int block = model.isEmpty() ? 0 : step.where % model.size();
        int count = Math.min(step.count, model.size() - block);
        switch (step.kind) {
            case EXTEND -> extend(step.count, step.where % 2 == 0);
            case EXTEND_ON_A_FULL_DISK -> extendOnAFullDisk(step);
            case FLUSH -> f.pool.flushAll();
            case FORGET_SIZES -> r.forgetSizes();
            case STRAY_ZERO_PAGE -> strayZeroPage(model.size() + step.where % 3);
            case READ_PAST_THE_END -> readPastTheEnd(step.count);
            default -> {
                if (count > 0) {
                    applyToPages(step, block, count);
                }
            }
        }
    }

    private void applyToPages(Step step, int block, int count) {
        switch (step.kind) {
            case READ_MANY, READ_MANY_AGAIN -> readMany(block, count);
            case CHANGE -> change(block);
            case PREFETCH -> assertTrue(reader.prefetch(r, MAIN, block, count) <= count);
            case TRUNCATE -> truncate(block);
            case READ_A_REFUSED_BLOCK -> readARefusedBlock(block, count, step.where % count);
            case READ_A_DAMAGED_BLOCK -> readADamagedBlock(block, count, step.where % count);
            case READ_WHILE_NO_VICTIM_CAN_BE_WRITTEN -> readWithoutVictims(block, count);
            default -> throw new AssertionError(step);
        }
    }

    private void readMany(int block, int count) {
        int got = reader.read(r, MAIN, block, count, ReadMode.NORMAL, null, buffers);
        assertTrue(got >= 1 && got <= count);
        for (int i = 0; i < got; i++) {
            assertEquals(block + i, f.pool.block(buffers[i]));
            assertPage(buffers[i], block + i);
            f.pool.release(buffers[i]);
        }
    }

    private void assertPage(int buffer, int block) {
        f.pool.wrap(buffer, page);
        int version = model.get(block);
        if (version == ZEROS) {
            assertTrue(f.pool.io.isZeroPage(buffer), "block " + block + " is not zeros");
        } else {
            assertEquals(block, page.getInt(4100), "the page of another block");
            assertEquals(version, page.getInt(4104), "version of block " + block);
        }
    }

    private void change(int block) {
        int buffer = f.pool.read(r, MAIN, block, ReadMode.NORMAL);
        assertPage(buffer, block);
        f.pool.lockExclusive(buffer);
        f.stamp(buffer, 1, block, ++versions);
        f.pool.markDirty(buffer);
        f.pool.unlock(buffer);
        f.pool.release(buffer);
        model.set(block, versions);
    }

    private void extend(int count, boolean lock) {
        if (model.size() > MOST_BLOCKS) {
            return;
        }
        int got = extension.extend(r, MAIN, count, null, buffers, lock);
        assertTrue(got >= 1 && got <= count);
        for (int i = 0; i < got; i++) {
            model.add(ZEROS);
            assertEquals(model.size() - 1, f.pool.block(buffers[i]));
            assertPage(buffers[i], model.size() - 1);
        }
        if (lock) {
            assertTrue(f.pool.content.heldExclusivelyByMe(buffers[0]));
            f.pool.unlock(buffers[0]);
        }
        for (int i = 0; i < got; i++) {
            f.pool.release(buffers[i]);
        }
    }

    private void extendOnAFullDisk(Step step) {
        f.pool.flushAll(); // or the victims' writes would fail first
        int fits = step.where % (2 * Page.SIZE);
        int before = model.size();
        f.disk.beforeWrite = PartialWrite.failing(fits, DiskException.ENOSPC);
        try {
            assertThrows(
                    DiskException.class,
                    () -> extension.extend(r, MAIN, step.count, null, buffers, false));
        } finally {
            f.disk.beforeWrite = (path, offset) -> {};
        }
        // The first write goes to the end of one segment at most; two pages' worth was stored.
        for (int i = 0; i < fits / Page.SIZE; i++) {
            model.add(ZEROS);
        }
        for (PoolInspection.Descriptor d : PoolInspection.descriptors(f.pool)) {
            assertTrue(d.block() < before || strays > 0, () -> "left in the pool: " + d);
        }
    }

    private int strays;

    /** As somebody leaves it who reads where the file has not grown yet. */
    private void strayZeroPage(int block) {
        int buffer = f.pool.read(r, MAIN, block, ReadMode.ZERO_AND_LOCK);
        f.pool.unlock(buffer);
        f.pool.release(buffer);
        strays++;
    }

    private void readPastTheEnd(int count) {
        if (strays > 0) {
            return;
        }
        int block = Math.max(0, model.size() - count / 2);
        KernelException e =
                assertThrows(
                        KernelException.class,
                        () -> reader.read(r, MAIN, block, count, ReadMode.NORMAL, null, buffers));
        assertTrue(e.getMessage().contains("block=" + model.size()), e.getMessage());
    }

    private void truncate(int block) {
        f.pool.dropRelationForks(r, new ForkNumber[] {MAIN}, new int[] {block}, 1);
        strays = 0;
        r.truncate(MAIN, block);
        model.subList(block, model.size()).clear();
    }

    private void readARefusedBlock(int block, int count, int which) {
        boolean resident = isResident(block + which);
        f.disk.beforeRead =
                (path, offset) -> {
                    if (blockOf(path, offset) == block + which) {
                        throw new DiskException("planted", path, DiskException.EIO);
                    }
                };
        try {
            expect(resident, DiskException.class, block, count, which);
        } finally {
            f.disk.beforeRead = (path, offset) -> {};
        }
    }

    private void readADamagedBlock(int block, int count, int which) {
        f.pool.flushAll();
        boolean resident = isResident(block + which);
        int old = exchange(block + which, -1);
        exchange(block + which, old ^ 1);
        try {
            expect(resident, DamagedDataException.class, block, count, which);
        } finally {
            exchange(block + which, old);
        }
    }

    /** Puts a byte into the middle of a block in the file, unless it is -1. @return the old one */
    private int exchange(int block, int value) {
        try (RandomAccessFile file = new RandomAccessFile(path(block), "rw")) {
            long at = (long) (block % SEGMENT) * Page.SIZE + 6000;
            file.seek(at);
            int old = file.read();
            if (value >= 0) {
                file.seek(at);
                file.write(value);
            }
            return old;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private String path(int block) {
        String first = f.file(r, MAIN).toString();
        return block < SEGMENT ? first : first + "." + block / SEGMENT;
    }

    /** A block at fault is an error that names it, unless its page was here; others are not. */
    private void expect(
            boolean resident, Class<? extends Exception> error, int block, int count, int which) {
        if (resident) {
            // It may be evicted in the course of it.
            try {
                readMany(block, count);
            } catch (KernelException e) {
                assertTrue(e.getMessage().contains("block=" + (block + which)), e.getMessage());
            }
            return;
        }
        Exception e = null;
        try {
            int got = reader.read(r, MAIN, block, count, ReadMode.NORMAL, null, buffers);
            assertTrue(got <= which, "a page at fault was returned");
            for (int i = 0; i < got; i++) {
                f.pool.release(buffers[i]);
            }
        } catch (KernelException thrown) {
            e = thrown;
        }
        if (e != null) {
            assertEquals(error, e.getClass());
            assertTrue(e.getMessage().contains("block=" + (block + which)), e.getMessage());
        }
        assertFalse(isResident(block + which));
    }

    private void readWithoutVictims(int block, int count) {
        f.disk.beforeWrite = PartialWrite.failing(0, DiskException.EIO);
        try {
            readMany(block, count);
        } catch (DiskException e) {
            assertTrue(e.getMessage().startsWith("could not write a dirty page"), e.getMessage());
        } finally {
            f.disk.beforeWrite = (path, offset) -> {};
        }
    }

    private boolean isResident(int block) {
        return f.pool.allocator.probe(PoolFixture.SPC, PoolFixture.DB, 1, 0, block) >= 0;
    }

    private static long blockOf(String path, long offset) {
        int dot = path.lastIndexOf('.');
        int segment = dot < 0 ? 0 : Integer.parseInt(path.substring(dot + 1));
        return (long) segment * SEGMENT + offset / Page.SIZE;
    }

    /** Everything is there, in the pool and in the file. */
    private void finish() {
        truncateStrays();
        for (int block = 0; block < model.size(); block++) {
            int buffer = f.pool.read(r, MAIN, block, ReadMode.NORMAL);
            assertPage(buffer, block);
            f.pool.release(buffer);
        }
        f.pool.flushAll();
        f.pool.dropRelations(new SmgrRelation[] {r}, 1);
        for (int block = 0; block < model.size(); block += buffers.length) {
            readMany(block, Math.min(buffers.length, model.size() - block));
        }
    }

    private void truncateStrays() {
        f.pool.dropRelationForks(r, new ForkNumber[] {MAIN}, new int[] {model.size()}, 1);
        strays = 0;
    }

    @Override
    public void close() {
        f.close();
    }
}
