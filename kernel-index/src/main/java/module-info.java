/** Index page formats and their redo. */
module org.pgkernel.index {
    requires transitive org.pgkernel.recovery;

    exports org.pgkernel.index;
}
