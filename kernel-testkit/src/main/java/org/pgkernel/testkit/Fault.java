package org.pgkernel.testkit;

/**
 * One planned fault of a {@link SimulatedDisk}: what happens at the {@code nth} call of a kind, at
 * every one when {@code nth} is 0.
 *
 * <p>As text {@code EFFECT@CALL#NTH}, with {@code :PART} behind when only paths that hold PART
 * count: {@code CRASH@CHANGE#12}, {@code EIO@SYNC#1:base/5/100}.
 *
 * @param part what a path must hold to be counted; empty for all. Of a rename, the new name
 */
public record Fault(Effect effect, DiskCall call, long nth, String part) {
    /** What a fault does; see the module's README. */
    public enum Effect {
        EIO(5),
        ENOSPC(28),
        EMFILE(24),
        SHORT(28),
        IGNORED(0),
        CRASH(0);

        private final int errno;

        Effect(int errno) {
            this.errno = errno;
        }

        int errno() {
            return errno;
        }

        /** True if the call does nothing but fail. */
        boolean failsAtOnce(DiskCall call) {
            return switch (this) {
                case EIO, ENOSPC, EMFILE ->
                        call != DiskCall.WRITE && call != DiskCall.SYNC && call != DiskCall.CLOSE;
                case SHORT, IGNORED, CRASH -> false;
            };
        }
    }

    public Fault {
        boolean makesSense =
                switch (effect) {
                    case SHORT -> call == DiskCall.READ || call == DiskCall.WRITE;
                    case IGNORED -> call.syncs();
                    case EIO, ENOSPC, EMFILE, CRASH -> true;
                };
        if (!makesSense || nth < 0 || part.contains(",") || part.contains(";")) {
            throw new IllegalArgumentException(
                    "no such fault: " + effect + "@" + call + "#" + nth + ":" + part);
        }
    }

    public static Fault at(Effect effect, DiskCall call, long nth) {
        return new Fault(effect, call, nth, "");
    }

    /** A crash at the n-th change, counted from 1. */
    public static Fault crashAtChange(long nth) {
        return at(Effect.CRASH, DiskCall.CHANGE, nth);
    }

    /** A crash at the n-th call of any kind, counted from 1. */
    public static Fault crashAtCall(long nth) {
        return at(Effect.CRASH, DiskCall.ANY, nth);
    }

    static Fault parse(String text) {
        int at = text.indexOf('@');
        int hash = text.indexOf('#');
        if (at < 0 || hash < at) {
            throw new IllegalArgumentException("not a fault (EFFECT@CALL#NTH[:PART]): " + text);
        }
        int colon = text.indexOf(':', hash);
        return new Fault(
                Effect.valueOf(text.substring(0, at)),
                DiskCall.valueOf(text.substring(at + 1, hash)),
                Long.parseLong(text.substring(hash + 1, colon < 0 ? text.length() : colon)),
                colon < 0 ? "" : text.substring(colon + 1));
    }

    @Override
    public String toString() {
        return effect + "@" + call + "#" + nth + (part.isEmpty() ? "" : ":" + part);
    }
}
