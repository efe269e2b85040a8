package org.pgkernel.benchmarks;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.BufferPoolOptions;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.bufmgr.DurabilityGate;
import org.pgkernel.bufmgr.PoolFiller;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;

/**
 * A pool, in recovery unless told otherwise, in which every buffer holds a page of some other
 * relation, and a place for victims in it. The other relations have 128 pages each, dealt out like
 * cards, so that about as many pages share a victim's fingerprint as chance has it.
 *
 * <p>Kept from benchmark to benchmark of one process, since filling 13 million buffers takes
 * seconds.
 */
final class FilledPool {
    static final int SPC = RelFileLocator.DEFAULT_TABLESPACE;
    static final int DB = 5;
    private static final int PAGES_OF_OTHERS = 128;
    private static final int FIRST_OTHER = 1_000_000;
    private static final int FIRST_VICTIM = 20_000;
    private static final int MAIN = ForkNumber.MAIN.ordinal();
    private static final long BLOCK_BYTES = 8192;

    /**
     * More than one: what was compiled for one kind of drop is thrown away when it meets another.
     */
    private static final int WARM_UP_ROUNDS = 3;

    private static final long WARM_UP_NANOS = 300_000_000;
    private static final int MOST_WARM_UPS = 20_000;

    private static FilledPool kept;

    final BufferPool pool;
    final PoolFiller filler;
    final SplittableRandom random = new SplittableRandom(20_201_123);
    private final DropStrategy strategy;
    private final Scratch scratch;
    private final StorageManager smgr;
    private final boolean inRecovery;
    private int victims;

    /** What is asked before each write; null: nothing. */
    DurabilityGate gate;

    private FilledPool(int nbuffers, DropStrategy strategy, boolean inRecovery) throws IOException {
        this.strategy = strategy;
        this.inRecovery = inRecovery;
        scratch = new Scratch();
        Files.createDirectories(scratch.resolve("data").resolve("base").resolve("" + DB));
        String directory = scratch.resolve("data").toString();
        PosixDisk disk = new PosixDisk();
        smgr =
                new StorageManager(
                        disk,
                        directory,
                        StorageManager.SEGMENT_BLOCKS,
                        inRecovery ? SizePolicy.RECOVERY_ONLY : SizePolicy.SHARED,
                        new SyncRequests(disk, directory));
        smgr.inRecovery(inRecovery);
        pool =
                BufferPool.open(
                        BufferPoolOptions.of(nbuffers).withChecksums(false).withStrategy(strategy),
                        smgr,
                        lsn -> {
                            if (gate != null) {
                                gate.beforeWrite(lsn);
                            }
                        });
        filler = new PoolFiller(pool);
        int others = Math.max(1, nbuffers / PAGES_OF_OTHERS);
        for (int i = 0; i < nbuffers; i++) {
            filler.map(SPC, DB, FIRST_OTHER + i % others, MAIN, i / others);
        }
        Runtime.getRuntime().addShutdownHook(new Thread(this::close));
    }

    /** The process's pool, in recovery; another one than last time is made anew. */
    static FilledPool of(int nbuffers, DropStrategy strategy) throws IOException {
        return of(nbuffers, strategy, true);
    }

    /** The same, in recovery or on a primary with shared sizes. */
    static FilledPool of(int nbuffers, DropStrategy strategy, boolean inRecovery)
            throws IOException {
        if (kept == null
                || kept.pool.nbuffers() != nbuffers
                || kept.strategy != strategy
                || kept.inRecovery != inRecovery) {
            if (kept != null) {
                kept.close();
            }
            kept = new FilledPool(nbuffers, strategy, inRecovery);
            for (int round = 0; round < WARM_UP_ROUNDS; round++) {
                kept.warmUp(1, 1);
                kept.warmUp(100, 100);
                kept.warmUp(100, 1_000_000);
            }
        }
        return kept;
    }

    /**
     * Until the compiler has done with a drop; else the first cells would be measured half
     * compiled.
     */
    private void warmUp(int resident, int blocks) throws IOException {
        SmgrRelation[] relations = {victim(blocks)};
        Guests guests = new Guests(resident);
        long end = System.nanoTime() + WARM_UP_NANOS;
        for (int i = 0; i < MOST_WARM_UPS && System.nanoTime() < end; i++) {
            for (int block = 0; block < resident; block++) {
                map(relations[0], block * (blocks / resident));
            }
            know(relations[0]);
            pool.dropRelations(relations, 1);
        }
        guests.comeBack();
        remove(relations[0]);
    }

    /** A relation whose main fork has so many blocks, none of them written. */
    SmgrRelation victim(int blocks) throws IOException {
        SmgrRelation relation = smgr.open(SPC, DB, FIRST_VICTIM + victims++);
        relation.create(ForkNumber.MAIN, true);
        Path file = scratch.resolve("data").resolve("base/" + DB + "/" + relation.relNumber());
        long left = blocks;
        for (int segment = 0; left > 0; segment++) {
            String name = file + (segment == 0 ? "" : "." + segment);
            try (RandomAccessFile f = new RandomAccessFile(name, "rw")) {
                f.setLength(Math.min(left, StorageManager.SEGMENT_BLOCKS) * BLOCK_BYTES);
            }
            left -= StorageManager.SEGMENT_BLOCKS;
        }
        know(relation);
        if (relation.nblocks(ForkNumber.MAIN) != blocks) {
            throw new IllegalStateException("the victim's file has another size");
        }
        return relation;
    }

    /** Makes all its sizes known, as if redo had asked for them. */
    static void know(SmgrRelation relation) {
        for (int fork = 0; fork < ForkNumber.COUNT; fork++) {
            if (relation.exists(ForkNumber.of(fork))) {
                relation.nblocks(ForkNumber.of(fork));
            }
        }
    }

    void remove(SmgrRelation relation) {
        smgr.unlinkAll(new SmgrRelation[] {relation}, 1, true);
    }

    /** Puts the block into the buffer freed last. */
    int map(SmgrRelation relation, int block) {
        return filler.map(SPC, DB, relation.relNumber(), MAIN, block);
    }

    boolean holds(SmgrRelation relation, int block) {
        return filler.find(SPC, DB, relation.relNumber(), MAIN, block) >= 0;
    }

    /** Pages of other relations that were taken out of the pool to make room. */
    final class Guests {
        private final int[] rels;
        private final int[] blocks;

        /** Frees so many buffers, spread uniformly over the pool. */
        Guests(int count) {
            rels = new int[count];
            blocks = new int[count];
            for (int i = 0; i < count; i++) {
                int buffer;
                do {
                    buffer = random.nextInt(pool.nbuffers());
                    rels[i] = filler.relNumber(buffer);
                    blocks[i] = filler.block(buffer);
                } while (!filler.unmap(buffer));
            }
        }

        /** Puts them back, so that the pool is full again. */
        void comeBack() {
            for (int i = 0; i < rels.length; i++) {
                filler.map(SPC, DB, rels[i], MAIN, blocks[i]);
            }
        }
    }

    private void close() {
        pool.close();
        smgr.close();
        scratch.close();
    }
}
