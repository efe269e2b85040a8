package org.pgkernel.wal;

import java.nio.ByteBuffer;
import java.util.Random;
import java.util.TreeMap;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;

/** Random records, each with the copy that a reader should make of it (LSNs apart). */
final class RandomRecords {
    private final Random random;
    final WalRecordBuilder builder = new WalRecordBuilder();

    /** Of the record last built; positions are zero. */
    WalLog.Copy expected;

    RandomRecords(long seed) {
        random = new Random(seed);
    }

    int nextInt(int bound) {
        return random.nextInt(bound);
    }

    /** Builds the next record in {@link #builder}. */
    WalRecordBuilder next(int maxData) {
        int rmid = random.nextInt(5) == 0 ? 128 + random.nextInt(128) : 1 + random.nextInt(21);
        int info = random.nextInt(256);
        int xid = random.nextInt();
        builder.begin(rmid, info, xid);
        if (random.nextInt(8) == 0) {
            builder.origin(1 + random.nextInt(100)).topLevelXid(1 + random.nextInt(1000));
        }
        TreeMap<Integer, WalLog.Block> blocks = new TreeMap<>();
        int count = random.nextInt(3) == 0 ? random.nextInt(5) : random.nextInt(2);
        for (int i = 0; i < count; i++) {
            int id = random.nextInt(4) == 0 ? random.nextInt(33) : i;
            if (!blocks.containsKey(id)) {
                blocks.put(id, block(id));
            }
        }
        // Short ones are the rule, as in life.
        byte[] data =
                bytes(random.nextInt(4) == 0 ? random.nextInt(maxData + 1) : random.nextInt(300));
        builder.data(new UnsafeBuffer(data), 0, data.length);
        expected = new WalLog.Copy(0, 0, 0, xid, rmid, info, ByteBuffer.wrap(data), blocks);
        return builder;
    }

    private WalLog.Block block(int id) {
        int spc = 1663;
        int db = random.nextInt(2);
        int rel = random.nextInt(3);
        int number = random.nextInt();
        ForkNumber fork = ForkNumber.of(random.nextInt(4));
        boolean willInit = false;
        byte[] page = null;
        if (random.nextInt(4) == 0) {
            page = page();
            builder.image(
                    id, spc, db, rel, fork, number, new UnsafeBuffer(page), random.nextBoolean());
        } else {
            willInit = random.nextBoolean();
            builder.block(
                    id,
                    spc,
                    db,
                    rel,
                    fork,
                    number,
                    willInit ? WalRecordFormat.BKPBLOCK_WILL_INIT : 0);
        }
        byte[] data = bytes(random.nextBoolean() ? 0 : random.nextInt(2000));
        builder.blockData(id, new UnsafeBuffer(data), 0, data.length / 2);
        builder.blockData(
                id, new UnsafeBuffer(data), data.length / 2, data.length - data.length / 2);
        return new WalLog.Block(
                spc,
                db,
                rel,
                fork,
                number,
                willInit,
                page == null ? null : ByteBuffer.wrap(page),
                ByteBuffer.wrap(data));
    }

    /** A page with zeros between pd_lower and pd_upper, sometimes without such a hole. */
    private byte[] page() {
        byte[] page = bytes(Page.SIZE);
        UnsafeBuffer view = new UnsafeBuffer(page);
        int lower = Page.HEADER_SIZE + random.nextInt(4000);
        int upper = random.nextInt(3) == 0 ? lower : lower + random.nextInt(Page.SIZE - lower + 1);
        Page.setLower(view, lower);
        Page.setUpper(view, upper);
        view.setMemory(lower, upper - lower, (byte) 0);
        return page;
    }

    private byte[] bytes(int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }
}
