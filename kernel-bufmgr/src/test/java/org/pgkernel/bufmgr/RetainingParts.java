package org.pgkernel.bufmgr;

/**
 * Parts of a pool in which pins are retained always: by backends, and also when a pin had through
 * the pool itself is given up; the thread then stands for a backend. So whatever uses such a pool
 * meets idle pins everywhere.
 */
class RetainingParts extends DropParts {
    /** A thread as a backend. */
    private static final class Owner {
        private final RetainedPins pins;

        /** Retention itself gives a pin up. */
        private boolean inside;

        private Owner(RetainedPins pins) {
            this.pins = pins;
        }
    }

    private Retention retention;
    private final ThreadLocal<Owner> owners =
            ThreadLocal.withInitial(() -> new Owner(retention.pins()));

    private final boolean retaining;

    /**
     * @param retaining false: parts as usual
     */
    RetainingParts(boolean retaining) {
        this.retaining = retaining;
    }

    @Override
    BufferDescriptors descriptors(PoolMemory memory, DirtyBitmap dirty) {
        if (!retaining) {
            return super.descriptors(memory, dirty);
        }
        return new BufferDescriptors(memory, dirty) {
            @Override
            boolean unpin(int buffer) {
                if (retention == null || owners.get().inside) {
                    return super.unpin(buffer);
                }
                owners.get().pins.release(buffer);
                return false; // who waited was woken if need be
            }
        };
    }

    @Override
    PinRetention retention(
            BufferPoolOptions options, BufferDescriptors descriptors, WaitTable cleanupWaits) {
        if (!retaining || options.lookupStyle() == LookupStyle.PARTITION_LOCK) {
            return super.retention(options, descriptors, cleanupWaits);
        }
        retention = new Retention(descriptors, cleanupWaits);
        return retention;
    }

    private final class Retention extends PinRetention {
        Retention(BufferDescriptors descriptors, WaitTable waits) {
            super(descriptors, waits, When.ALWAYS);
        }

        @Override
        void unpin(int buffer) {
            Owner owner = owners.get();
            boolean before = owner.inside;
            owner.inside = true;
            try {
                super.unpin(buffer);
            } finally {
                owner.inside = before;
            }
        }
    }
}
