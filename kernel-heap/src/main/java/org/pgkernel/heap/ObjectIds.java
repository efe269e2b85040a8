package org.pgkernel.heap;

/**
 * Where new object ids come from: the counter that all of the cluster's objects and long values
 * share. Thread-safe.
 *
 * <p>R04: no id is given out twice, whatever crashed in between: before an id is returned, the log
 * says durably enough that recovery begins behind it (an XLOG_NEXTOID record, inserted before any
 * record that could tell the id). Only after 2^32 of them do ids come again; who needs one that is
 * not in use looks. (PostgreSQL: GetNewObjectId, varsup.c.)
 */
@FunctionalInterface
public interface ObjectIds {
    /** Never 0. */
    int next();
}
