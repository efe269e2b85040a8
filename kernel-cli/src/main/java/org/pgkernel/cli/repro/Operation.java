package org.pgkernel.cli.repro;

/** What the primary does to its tables between the pause LSN and its stop. */
enum Operation {
    TRUNCATE,
    VACUUM;

    String label() {
        return name();
    }
}
