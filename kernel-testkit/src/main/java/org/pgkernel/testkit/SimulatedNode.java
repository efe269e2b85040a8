package org.pgkernel.testkit;

/** What a name of a {@link SimulatedDisk} stands for. */
sealed interface SimulatedNode permits FileNode, DirectoryNode {
    /** The same in every disk that comes of one by crash or copy. */
    long id();
}
