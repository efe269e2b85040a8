/**
 * The words of the trade: identifiers, page layout, checksums, formats of small files, the disk
 * seam, errors.
 */
module org.pgkernel.base {
    requires transitive org.agrona;

    exports org.pgkernel.base;
    exports org.pgkernel.base.disk;
    exports org.pgkernel.base.error;
}
