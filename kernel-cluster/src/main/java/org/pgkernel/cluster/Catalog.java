package org.pgkernel.cluster;

/** Our catalogue: heap tables with fixed file numbers, below those that tables get. */
final class Catalog {
    static final int CLASS = 9000;
    static final int ATTRIBUTE = 9001;

    private Catalog() {}
}
