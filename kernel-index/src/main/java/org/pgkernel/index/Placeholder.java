package org.pgkernel.index;

/** Removed when the first real class arrives. */
final class Placeholder {
    private Placeholder() {}
}
