package org.pgkernel.cli.repro;

/** When the standby's base copy is taken. */
enum BaseKind {
    /**
     * From the empty cluster: the standby replays the load, so pages are resident and sizes known.
     */
    EMPTY("empty"),
    /** After the load (and DELETE): nothing resident, no size known. */
    AFTER_LOAD("after-load");

    private final String label;

    BaseKind(String label) {
        this.label = label;
    }

    String label() {
        return label;
    }

    static BaseKind parse(String text) {
        for (BaseKind kind : values()) {
            if (kind.label.equals(text)) {
                return kind;
            }
        }
        throw new IllegalArgumentException(
                "--base must be empty or after-load, not \"" + text + "\"");
    }
}
