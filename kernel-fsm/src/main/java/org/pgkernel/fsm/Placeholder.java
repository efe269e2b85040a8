package org.pgkernel.fsm;

/** Removed when the first real class arrives. */
final class Placeholder {
    private Placeholder() {}
}
