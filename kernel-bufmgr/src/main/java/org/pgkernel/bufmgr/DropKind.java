package org.pgkernel.bufmgr;

/** What was asked to be dropped. */
public enum DropKind {
    /** Forks of one relation, each from a block on: a truncation. */
    FORKS,
    /** All forks of relations. */
    RELATIONS,
    /** All relations of a database. */
    DATABASE
}
