package org.pgkernel.cli;

/** Removed when the first real class arrives. */
final class Placeholder {
    private Placeholder() {}
}
