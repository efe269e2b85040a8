package org.pgkernel.testkit;

import java.util.HashMap;
import java.util.Map;

/** A directory of a {@link SimulatedDisk}. Guarded by the disk's lock. */
final class DirectoryNode implements SimulatedNode {
    private final long id;

    /** Entries as programs see them. */
    final Map<String, SimulatedNode> seen = new HashMap<>();

    /** Entries on the medium. */
    final Map<String, SimulatedNode> medium = new HashMap<>();

    DirectoryNode(long id) {
        this.id = id;
    }

    @Override
    public long id() {
        return id;
    }
}
