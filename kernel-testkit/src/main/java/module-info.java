/** Tools for tests: a real PostgreSQL, byte comparison, a simulated disk. */
module org.pgkernel.testkit {
    requires transitive org.pgkernel.base;

    exports org.pgkernel.testkit;
    exports org.pgkernel.testkit.golden;
    exports org.pgkernel.testkit.verify;

    requires java.sql;
    requires org.apache.commons.compress;
    requires org.postgresql.jdbc;
    requires org.tukaani.xz;
}
