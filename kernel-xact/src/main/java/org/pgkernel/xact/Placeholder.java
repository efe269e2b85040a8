package org.pgkernel.xact;

/** Removed when the first real class arrives. */
final class Placeholder {
    private Placeholder() {}
}
