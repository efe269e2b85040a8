/** Relations as forks in 1 GiB segment files; sync and unlink requests. */
module org.pgkernel.smgr {
    requires transitive org.pgkernel.base;

    exports org.pgkernel.smgr;
}
