/** Free space map, visibility map, and Storage redo. */
module org.pgkernel.fsm {
    requires transitive org.pgkernel.recovery;

    exports org.pgkernel.fsm;
}
