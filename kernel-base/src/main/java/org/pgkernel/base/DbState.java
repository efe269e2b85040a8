package org.pgkernel.base;

/**
 * What the control file says about the cluster; {@link #ordinal()} is the number on disk.
 * (PostgreSQL: DBState, pg_control.h.)
 */
public enum DbState {
    STARTUP("starting up"),
    SHUTDOWNED("shut down"),
    SHUTDOWNED_IN_RECOVERY("shut down in recovery"),
    SHUTDOWNING("shutting down"),
    IN_CRASH_RECOVERY("in crash recovery"),
    IN_ARCHIVE_RECOVERY("in archive recovery"),
    IN_PRODUCTION("in production");

    private static final DbState[] ALL = values();

    private final String text;

    DbState(String text) {
        this.text = text;
    }

    /** The words that pg_controldata prints. */
    public String text() {
        return text;
    }

    /** The state with this number, null when there is none. */
    public static DbState of(int number) {
        return number >= 0 && number < ALL.length ? ALL[number] : null;
    }
}
