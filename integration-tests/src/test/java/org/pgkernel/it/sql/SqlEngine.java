package org.pgkernel.it.sql;

import org.pgkernel.testkit.golden.ScriptStatement;
import org.pgkernel.testkit.golden.ThreadedSession;

/** One session that understands the little SQL of golden scripts. */
public interface SqlEngine extends AutoCloseable {
    /**
     * @return rows, a count of rows or "ok", as golden scripts show them
     * @throws ThreadedSession.Failure for an error that a script may expect
     */
    String execute(ScriptStatement statement) throws ThreadedSession.Failure;

    /** Ends the transaction; it need not survive a crash yet. */
    void commitAsynchronously();

    /** True if the session, in no transaction, sees such a table. */
    boolean exists(String table);

    @Override
    void close();
}
