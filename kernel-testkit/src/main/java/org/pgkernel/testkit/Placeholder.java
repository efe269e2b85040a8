package org.pgkernel.testkit;

/** Removed when the first real class arrives. */
final class Placeholder {
    private Placeholder() {}
}
