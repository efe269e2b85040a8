/** Heap pages and the redo of Heap and Heap2. */
module org.pgkernel.heap {
    requires transitive org.pgkernel.recovery;
    requires transitive org.pgkernel.fsm;

    exports org.pgkernel.heap;
}
