package org.pgkernel.bufmgr;

import java.util.function.Consumer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/** What the shared pool and a local one have in common, for {@link PagePoolContract}. */
abstract class PagePool implements AutoCloseable {
    static final ForkNumber MAIN = ForkNumber.MAIN;

    abstract SmgrRelation relation(int rel);

    abstract int read(SmgrRelation relation, int block, ReadMode mode);

    abstract int readMany(SmgrRelation relation, int block, int count, int[] buffers);

    abstract int extendBy(SmgrRelation relation, int count, int[] buffers);

    /** Gives up the pin, and the lock if the mode took one. */
    abstract void release(int buffer, ReadMode mode);

    abstract int block(int buffer);

    abstract void wrap(int buffer, UnsafeBuffer view);

    /** Changes the page under whatever lock it takes, and marks it dirty. */
    abstract void change(int buffer, Consumer<UnsafeBuffer> change);

    abstract void flush(SmgrRelation relation);

    abstract void dropFrom(SmgrRelation relation, int firstBlock);

    abstract void dropAll(SmgrRelation relation);

    abstract int pinned();

    abstract void check();

    @Override
    public abstract void close();

    /** The shared pool. */
    static final class Shared extends PagePool {
        private final PoolFixture f;
        private final BufferPool pool;

        Shared(PoolFixture f, int nbuffers) {
            this.f = f;
            f.pool(nbuffers, true, DropStrategy.ADAPTIVE);
            pool = f.pool;
            pool.maxBackends(4);
        }

        @Override
        SmgrRelation relation(int rel) {
            return f.relation(rel);
        }

        @Override
        int read(SmgrRelation relation, int block, ReadMode mode) {
            return pool.read(relation, MAIN, block, mode);
        }

        @Override
        int readMany(SmgrRelation relation, int block, int count, int[] buffers) {
            return pool.readMany(relation, MAIN, block, count, ReadMode.NORMAL, null, buffers);
        }

        @Override
        int extendBy(SmgrRelation relation, int count, int[] buffers) {
            return pool.extendBy(relation, MAIN, count, null, buffers, false);
        }

        @Override
        void release(int buffer, ReadMode mode) {
            if (mode == ReadMode.ZERO_AND_LOCK || mode == ReadMode.ZERO_AND_CLEANUP_LOCK) {
                pool.unlock(buffer);
            }
            pool.release(buffer);
        }

        @Override
        int block(int buffer) {
            return pool.block(buffer);
        }

        @Override
        void wrap(int buffer, UnsafeBuffer view) {
            pool.wrap(buffer, view);
        }

        @Override
        void change(int buffer, Consumer<UnsafeBuffer> change) {
            pool.lockExclusive(buffer);
            change.accept(f.page(buffer));
            pool.markDirty(buffer);
            pool.unlock(buffer);
        }

        @Override
        void flush(SmgrRelation relation) {
            pool.flushRelation(relation);
        }

        @Override
        void dropFrom(SmgrRelation relation, int firstBlock) {
            pool.dropRelationForks(relation, new ForkNumber[] {MAIN}, new int[] {firstBlock}, 1);
        }

        @Override
        void dropAll(SmgrRelation relation) {
            pool.dropRelations(new SmgrRelation[] {relation}, 1);
        }

        @Override
        int pinned() {
            return pool.pinnedBuffers();
        }

        @Override
        void check() {
            PoolInspection.check(pool);
        }

        @Override
        public void close() {
            f.close();
        }
    }

    /** A backend's own. */
    static final class Local extends PagePool {
        static final int BACKEND = 3;

        private final PoolFixture f;
        private final LocalBufferPool pool;

        Local(PoolFixture f, int nbuffers) {
            this.f = f;
            pool = new LocalBufferPool(f.smgr, BACKEND, nbuffers, true);
        }

        @Override
        SmgrRelation relation(int rel) {
            return pool.relation(PoolFixture.SPC, PoolFixture.DB, rel);
        }

        @Override
        int read(SmgrRelation relation, int block, ReadMode mode) {
            return pool.read(relation, MAIN, block, mode);
        }

        @Override
        int readMany(SmgrRelation relation, int block, int count, int[] buffers) {
            return pool.readMany(relation, MAIN, block, count, ReadMode.NORMAL, buffers);
        }

        @Override
        int extendBy(SmgrRelation relation, int count, int[] buffers) {
            return pool.extendBy(relation, MAIN, count, buffers);
        }

        @Override
        void release(int buffer, ReadMode mode) {
            pool.release(buffer);
        }

        @Override
        int block(int buffer) {
            return pool.block(buffer);
        }

        @Override
        void wrap(int buffer, UnsafeBuffer view) {
            pool.wrap(buffer, view);
        }

        @Override
        void change(int buffer, Consumer<UnsafeBuffer> change) {
            UnsafeBuffer view = new UnsafeBuffer(0L, 0);
            pool.wrap(buffer, view);
            change.accept(view);
            pool.markDirty(buffer);
        }

        @Override
        void flush(SmgrRelation relation) {
            pool.flushRelation(relation);
        }

        @Override
        void dropFrom(SmgrRelation relation, int firstBlock) {
            pool.dropFork(relation, MAIN, firstBlock);
        }

        @Override
        void dropAll(SmgrRelation relation) {
            pool.dropRelation(relation);
        }

        @Override
        int pinned() {
            return pool.pinnedBuffers();
        }

        @Override
        void check() {
            pool.check();
        }

        @Override
        public void close() {
            pool.close();
            f.close();
        }
    }
}
