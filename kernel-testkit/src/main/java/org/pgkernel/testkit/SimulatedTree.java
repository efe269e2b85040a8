package org.pgkernel.testkit;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.pgkernel.base.error.DiskException;

/**
 * The names of a {@link SimulatedDisk}: directories, and the changes of their entries that no
 * directory sync has made durable yet. Guarded by the disk's lock.
 */
final class SimulatedTree {
    private static final int ENOTDIR = 20;
    private static final int EISDIR = 21;
    private static final int ENOTEMPTY = 39;

    /** Where a name stands. */
    private record Name(DirectoryNode directory, String name) {
        SimulatedNode node() {
            return directory.seen.get(name);
        }
    }

    /**
     * A name that stands for another node from now on.
     *
     * @param node null for none
     */
    private record Entry(DirectoryNode directory, String name, SimulatedNode node) {
        /** Entries are of one name if these are equal; nodes have identity, so this is a key. */
        Name key() {
            return new Name(directory, name);
        }
    }

    /**
     * Unsynced: one entry, or the two of a rename, which land together.
     *
     * @param second null but for a rename
     * @param order in the journal
     */
    private record NameChange(Entry first, Entry second, long order) {}

    private final Journal journal;
    private final DirectoryNode root;
    private long lastId;
    private final List<NameChange> unsynced = new ArrayList<>();

    SimulatedTree() {
        this(new Journal(), new DirectoryNode(0), 0);
    }

    private SimulatedTree(Journal journal, DirectoryNode root, long lastId) {
        this.journal = journal;
        this.root = root;
        this.lastId = lastId;
    }

    /** The node of a path; null when there is none. */
    SimulatedNode find(String path) {
        SimulatedNode node = root;
        for (int from = 0; from < path.length(); ) {
            int slash = path.indexOf('/', from);
            int end = slash < 0 ? path.length() : slash;
            if (end > from && !(end == from + 1 && path.charAt(from) == '.')) {
                if (!(node instanceof DirectoryNode directory)) {
                    throw new DiskException("could not find file", path, ENOTDIR);
                }
                node = directory.seen.get(path.substring(from, end));
                if (node == null) {
                    return null;
                }
            }
            from = end + 1;
        }
        return node;
    }

    /** The file of a path; null when there is none. */
    FileNode file(String path) {
        SimulatedNode node = find(path);
        if (node instanceof DirectoryNode) {
            throw new DiskException("could not open file", path, EISDIR);
        }
        return (FileNode) node;
    }

    /** Makes a file that is not there. */
    FileNode createFile(String path) {
        Name name = name(path, "could not create file");
        FileNode file = new FileNode(++lastId, journal);
        file.names = 1;
        change(new Entry(name.directory, name.name, file), null);
        return file;
    }

    /**
     * @return false when it exists
     */
    boolean createDirectory(String path) {
        Name name = name(path, "could not create directory");
        if (name.node() != null) {
            return false;
        }
        change(new Entry(name.directory, name.name, new DirectoryNode(++lastId)), null);
        return true;
    }

    /** Makes a directory with all that is missing above it. */
    void createDirectories(String path) {
        for (int end = path.indexOf('/', 1); end > 0; end = path.indexOf('/', end + 1)) {
            createDirectory(path.substring(0, end));
        }
        createDirectory(path);
    }

    /**
     * @return the file that has lost its name; null when there was none
     */
    FileNode unlink(String path) {
        FileNode file = file(path);
        if (file != null) {
            Name name = name(path, "could not remove file");
            change(new Entry(name.directory, name.name, null), null);
            file.names--;
        }
        return file;
    }

    /**
     * @return false when there was none
     */
    boolean removeDirectory(String path) {
        SimulatedNode node = find(path);
        if (node == null) {
            return false;
        }
        if (!(node instanceof DirectoryNode directory)) {
            throw new DiskException("could not remove directory", path, ENOTDIR);
        }
        if (!directory.seen.isEmpty()) {
            throw new DiskException("could not remove directory", path, ENOTEMPTY);
        }
        Name name = name(path, "could not remove directory");
        change(new Entry(name.directory, name.name, null), null);
        return true;
    }

    /**
     * @return the file that {@code to} stood for; null when there was none
     */
    FileNode rename(String from, String to) {
        String what = "could not rename to " + to;
        SimulatedNode node = find(from);
        if (node == null) {
            throw new DiskException(what, from, DiskException.ENOENT);
        }
        Name source = name(from, what);
        Name target = name(to, what);
        SimulatedNode replaced = target.node();
        if (replaced == node) {
            return null;
        }
        if (replaced instanceof DirectoryNode directory) {
            if (node instanceof FileNode) {
                throw new DiskException(what, from, EISDIR);
            }
            if (!directory.seen.isEmpty()) {
                throw new DiskException(what, from, ENOTEMPTY);
            }
        } else if (replaced != null && node instanceof DirectoryNode) {
            throw new DiskException(what, from, ENOTDIR);
        }
        change(
                new Entry(source.directory, source.name, null),
                new Entry(target.directory, target.name, node));
        if (replaced instanceof FileNode file) {
            file.names--;
            return file;
        }
        return null;
    }

    /** A directory's entries become durable (SD-2), and what they depend on. */
    void sync(DirectoryNode directory) {
        Set<Name> needed = new HashSet<>();
        List<NameChange> durable = new ArrayList<>();
        for (int i = unsynced.size() - 1; i >= 0; i--) {
            NameChange change = unsynced.get(i);
            boolean here =
                    change.first.directory == directory
                            || change.second != null && change.second.directory == directory;
            if (here
                    || needed.contains(change.first.key())
                    || change.second != null && needed.contains(change.second.key())) {
                needed.add(change.first.key());
                if (change.second != null) {
                    needed.add(change.second.key());
                }
                durable.add(change);
            }
        }
        for (NameChange change : durable.reversed()) {
            land(change);
        }
        Set<NameChange> gone = Collections.newSetFromMap(new IdentityHashMap<>());
        gone.addAll(durable);
        unsynced.removeIf(gone::contains);
    }

    /** Every name and every file becomes durable. */
    void syncAll() {
        unsynced.forEach(this::land);
        unsynced.clear();
        syncFiles(root);
    }

    private static void syncFiles(DirectoryNode directory) {
        for (SimulatedNode node : directory.seen.values()) {
            switch (node) {
                case FileNode file -> file.sync();
                case DirectoryNode below -> syncFiles(below);
            }
        }
    }

    private void land(NameChange change) {
        journal.synced(change.order);
        put(change.first.directory.medium, change.first);
        if (change.second != null) {
            put(change.second.directory.medium, change.second);
        }
    }

    /**
     * The tree as a crash leaves it; this one stays as it is.
     *
     * @param ordered names and lengths land in the order they were made
     */
    SimulatedTree afterCrash(long outcome, boolean ordered) {
        long journalEnd = ordered ? journalEnd(outcome) : -1;
        Map<DirectoryNode, Map<String, SimulatedNode>> landed = new IdentityHashMap<>();
        Landing landing = Landing.of(outcome, -1, unsynced.size(), journalEnd);
        Set<Name> lost = new HashSet<>();
        for (NameChange change : unsynced) {
            Name first = change.first.key();
            Name second = change.second == null ? first : change.second.key();
            boolean lands = landing.lands(change.order);
            if (lands && !lost.contains(first) && !lost.contains(second)) {
                enter(landed, change.first);
                if (change.second != null) {
                    enter(landed, change.second);
                }
            } else {
                lost.add(first);
                lost.add(second);
            }
        }
        Journal journalThen = new Journal();
        DirectoryNode rootThen = new DirectoryNode(0);
        copy(root, rootThen, landed, outcome, journalEnd, journalThen);
        return new SimulatedTree(journalThen, rootThen, lastId);
    }

    private long journalEnd(long outcome) {
        if (outcome == SimulatedDisk.LOSE_ALL) {
            return journal.synced();
        }
        if (outcome == SimulatedDisk.KEEP_ALL) {
            return journal.last();
        }
        int open = (int) (journal.last() - journal.synced());
        return journal.synced() + new Chance(outcome, -2).next(open + 1);
    }

    private static void enter(Map<DirectoryNode, Map<String, SimulatedNode>> landed, Entry entry) {
        landed.computeIfAbsent(entry.directory, directory -> new HashMap<>())
                .put(entry.name, entry.node);
    }

    private static void copy(
            DirectoryNode from,
            DirectoryNode to,
            Map<DirectoryNode, Map<String, SimulatedNode>> landed,
            long outcome,
            long journalEnd,
            Journal journal) {
        Map<String, SimulatedNode> entries = from.medium;
        Map<String, SimulatedNode> changed = landed.get(from);
        if (changed != null) {
            entries = new HashMap<>(from.medium);
            entries.putAll(changed);
        }
        entries.forEach(
                (name, node) -> {
                    SimulatedNode then =
                            switch (node) {
                                case null -> null;
                                case FileNode file -> {
                                    FileNode found =
                                            file.afterCrash(
                                                    Landing.of(
                                                            outcome,
                                                            file.id(),
                                                            file.unsyncedChanges(),
                                                            journalEnd),
                                                    journal);
                                    found.names = 1;
                                    yield found;
                                }
                                case DirectoryNode directory -> {
                                    DirectoryNode found = new DirectoryNode(directory.id());
                                    copy(directory, found, landed, outcome, journalEnd, journal);
                                    yield found;
                                }
                            };
                    if (then != null) {
                        to.seen.put(name, then);
                        to.medium.put(name, then);
                    }
                });
    }

    /** Space taken by all files that programs can see. */
    static long allocatedSectors(DirectoryNode directory) {
        long sectors = 0;
        for (SimulatedNode node : directory.seen.values()) {
            sectors +=
                    switch (node) {
                        case FileNode file -> file.allocatedSectors();
                        case DirectoryNode below -> allocatedSectors(below);
                    };
        }
        return sectors;
    }

    DirectoryNode root() {
        return root;
    }

    private void change(Entry first, Entry second) {
        unsynced.add(new NameChange(first, second, journal.next()));
        put(first.directory.seen, first);
        if (second != null) {
            put(second.directory.seen, second);
        }
    }

    private static void put(Map<String, SimulatedNode> entries, Entry entry) {
        if (entry.node == null) {
            entries.remove(entry.name);
        } else {
            entries.put(entry.name, entry.node);
        }
    }

    /** Where a name stands or could stand; its directory must be there. */
    private Name name(String path, String what) {
        String trimmed = path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
        int slash = trimmed.lastIndexOf('/');
        SimulatedNode parent = slash <= 0 ? root : find(trimmed.substring(0, slash));
        return switch (parent) {
            case null -> throw new DiskException(what, path, DiskException.ENOENT);
            case FileNode file -> throw new DiskException(what, path, ENOTDIR);
            case DirectoryNode directory -> new Name(directory, trimmed.substring(slash + 1));
        };
    }
}
