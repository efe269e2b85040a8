/** The buffer pool and the strategies that drop a relation's buffers. */
module org.pgkernel.bufmgr {
    requires transitive org.pgkernel.base;
    requires transitive org.pgkernel.smgr;

    exports org.pgkernel.bufmgr;
}
