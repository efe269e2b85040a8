package org.pgkernel.testkit;

/** The last calls on a disk, for messages. Guarded by the disk's lock; allocates nothing. */
final class CallTrace {
    private static final int KEPT = 64;

    private final DiskCall[] calls = new DiskCall[KEPT];
    private final String[] paths = new String[KEPT];
    private final long[] offsets = new long[KEPT];
    private final int[] lengths = new int[KEPT];
    private final Fault.Effect[] effects = new Fault.Effect[KEPT];
    private long count;

    void add(DiskCall call, String path, long offset, int length, Fault.Effect effect) {
        int slot = (int) (count++ % KEPT);
        calls[slot] = call;
        paths[slot] = path;
        offsets[slot] = offset;
        lengths[slot] = length;
        effects[slot] = effect;
    }

    /** The last {@code most} calls, one a line, the latest last. */
    String text(int most) {
        StringBuilder text = new StringBuilder();
        for (long number = Math.max(0, count - Math.min(most, KEPT)); number < count; number++) {
            int slot = (int) (number % KEPT);
            text.append("  #").append(number + 1).append(' ').append(calls[slot]);
            text.append(' ').append(paths[slot]);
            if (lengths[slot] != 0 || offsets[slot] != 0) {
                text.append(" offset=").append(offsets[slot]);
            }
            if (lengths[slot] != 0) {
                text.append(" length=").append(lengths[slot]);
            }
            if (effects[slot] != null) {
                text.append(" -> ").append(effects[slot]);
            }
            text.append('\n');
        }
        return text.toString();
    }
}
