/** PostgreSQL 15's write-ahead log: format, reading, writing. */
module org.pgkernel.wal {
    requires transitive org.pgkernel.base;
    requires aircompressor.v3;

    exports org.pgkernel.wal;
}
