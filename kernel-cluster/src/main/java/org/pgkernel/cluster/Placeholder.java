package org.pgkernel.cluster;

/** Removed when the first real class arrives. */
final class Placeholder {
    private Placeholder() {}
}
