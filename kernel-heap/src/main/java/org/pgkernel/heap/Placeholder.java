package org.pgkernel.heap;

/** Removed when the first real class arrives. */
final class Placeholder {
    private Placeholder() {}
}
