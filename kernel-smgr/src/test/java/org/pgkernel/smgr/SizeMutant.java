package org.pgkernel.smgr;

import java.util.function.Supplier;
import org.pgkernel.base.BlockNumber;

/** Sizes with a fault each, for the tests that must find it. */
enum SizeMutant implements Supplier<RememberedSize> {
    REMEMBERED_BEFORE_THE_FILE_GREW {
        @Override
        public RememberedSize get() {
            return new RememberedSize() {
                @Override
                int grown(int block, int count, boolean shared) {
                    int grown = super.grown(block, count, shared);
                    if (grown != BlockNumber.INVALID) {
                        is(grown, true);
                    }
                    return grown;
                }
            };
        }
    },
    FAILED_EXTENSION_KEEPS_THE_SIZE {
        @Override
        public RememberedSize get() {
            return new RememberedSize() {
                @Override
                void extensionFailed() {}
            };
        }
    },
    EXTENSION_IS_NOT_REMEMBERED {
        @Override
        public RememberedSize get() {
            return new RememberedSize() {
                @Override
                int grown(int block, int count, boolean shared) {
                    return blocks();
                }
            };
        }
    },
    TRUNCATION_FORGETS_THE_FORK {
        @Override
        public RememberedSize get() {
            return new RememberedSize() {
                @Override
                void cutting() {}

                @Override
                void cut(int blocks, boolean proof) {}
            };
        }
    },
    OLD_SIZE_STANDS_WHILE_FILES_ARE_CUT {
        @Override
        public RememberedSize get() {
            return new RememberedSize() {
                @Override
                void cutting() {}
            };
        }
    },
    WRITE_FORGETS_KNOWN_SIZES_ONLY {
        @Override
        public RememberedSize get() {
            return new RememberedSize() {
                @Override
                boolean covers(int block) {
                    return blocks() == BlockNumber.INVALID || super.covers(block);
                }
            };
        }
    },
    PROOF_OUTSIDE_RECOVERY {
        @Override
        public RememberedSize get() {
            return new RememberedSize() {
                @Override
                long answer(StorageManager manager) {
                    int blocks = blocks();
                    return blocks == BlockNumber.INVALID
                            ? ForkSize.UNKNOWN
                            : ForkSize.accurate(blocks);
                }
            };
        }
    },
    HINTS_BECOME_PROOF {
        @Override
        public RememberedSize get() {
            return new RememberedSize() {
                @Override
                void is(int blocks, boolean proof) {
                    super.is(blocks, true);
                }

                @Override
                void forget() {}
            };
        }
    };
}
