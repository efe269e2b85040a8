package org.pgkernel.heap;

import static org.pgkernel.heap.TupleOutcome.*;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Rows, their versions and locks as a multi-version database has them, without pages: what each
 * attempt to change or lock a version must answer, and which versions a snapshot sees. Nobody
 * waits.
 */
final class HeapModel {
    /** A transaction or subtransaction. */
    static final class Work {
        final Transaction of;
        boolean aborted;

        Work(Transaction of) {
            this.of = of;
        }

        boolean isLive() {
            return !aborted && !of.committed;
        }

        boolean hasCommitted() {
            return !aborted && of.committed;
        }
    }

    /** A top-level transaction with what is nested in it. */
    static final class Transaction {
        final List<List<Work>> levels = new ArrayList<>();
        boolean committed;

        Transaction() {
            savepoint();
        }

        int savepoint() {
            levels.add(new ArrayList<>(List.of(new Work(this))));
            return levels.size() - 1;
        }

        Work current() {
            return levels.getLast().getFirst();
        }

        void release(int level) {
            while (levels.size() > level) {
                levels.get(levels.size() - 2).addAll(levels.removeLast());
            }
        }

        void rollbackTo(int level) {
            abort(level);
            savepoint();
        }

        private void abort(int level) {
            while (levels.size() > level) {
                levels.removeLast().forEach(work -> work.aborted = true);
            }
        }

        void rollback() {
            abort(0);
        }
    }

    record Lock(Work by, RowLock lock) {}

    static final class Row {
        final List<Lock> locks = new ArrayList<>();
    }

    static final class Version {
        final Row row;
        final long tid;
        final String text;
        final int key;
        final Work creator;
        final int created;
        Work replacer;
        int replaced;
        RowLock replacedWith;

        /** Null if it was deleted. */
        Version next;

        Version(Row row, long tid, int key, String text, Work creator, int created) {
            this.row = row;
            this.tid = tid;
            this.key = key;
            this.text = text;
            this.creator = creator;
            this.created = created;
        }

        boolean isReplaced() {
            return replacer != null && !replacer.aborted;
        }
    }

    /** What a snapshot sees: whose commits, and which own commands. */
    record Snapshot(Transaction of, Set<Transaction> committed, int command) {
        private boolean sees(Work work, int command) {
            return !work.aborted
                    && (work.of == of ? command < this.command : committed.contains(work.of));
        }

        boolean sees(Version version) {
            return sees(version.creator, version.created)
                    && !(version.isReplaced() && sees(version.replacer, version.replaced));
        }
    }

    final List<Version> versions = new ArrayList<>();
    private final Set<Transaction> committed = new HashSet<>();

    Snapshot snapshot(Transaction of, int command) {
        return new Snapshot(of, new HashSet<>(committed), command);
    }

    void commit(Transaction transaction) {
        transaction.committed = true;
        committed.add(transaction);
    }

    List<Version> seen(Snapshot snapshot) {
        return versions.stream().filter(snapshot::sees).toList();
    }

    /** What nobody can see any more is forgotten, when no transaction runs. */
    void forgetDead() {
        versions.removeIf(
                version ->
                        version.creator.aborted
                                || version.isReplaced() && version.replacer.hasCommitted());
        versions.forEach(version -> version.row.locks.clear());
    }

    Version insert(long tid, int key, String text, Work by, int command) {
        Version version = new Version(new Row(), tid, key, text, by, command);
        versions.add(version);
        return version;
    }

    private static boolean othersLock(Row row, Transaction own, RowLock wanted) {
        return row.locks.stream()
                .anyMatch(
                        lock ->
                                lock.by.isLive()
                                        && lock.by.of != own
                                        && lock.lock.conflictsWith(wanted));
    }

    /**
     * @return the answers that are right to an update or a deletion
     */
    Set<TupleOutcome> mayChange(Version version, Transaction own, RowLock wanted) {
        boolean othersLock = othersLock(version.row, own, wanted);
        if (version.isReplaced()) {
            if (version.replacer.of == own) {
                return EnumSet.of(SELF_MODIFIED);
            }
            if (!version.replacer.hasCommitted()) {
                return EnumSet.of(BEING_MODIFIED);
            }
            TupleOutcome moved = version.next == null ? DELETED : UPDATED;
            // Whether who is in the way has locked this version or a newer one makes a difference.
            return othersLock ? EnumSet.of(moved, BEING_MODIFIED) : EnumSet.of(moved);
        }
        return EnumSet.of(othersLock ? BEING_MODIFIED : OK);
    }

    /** The same for a lock that follows updates. */
    Set<TupleOutcome> mayLock(Version version, Transaction own, RowLock wanted) {
        boolean held =
                version.row.locks.stream()
                        .anyMatch(
                                lock ->
                                        lock.by.isLive()
                                                && lock.by.of == own
                                                && lock.lock.compareTo(wanted) >= 0);
        if (version.isReplaced() && version.replacer.of == own) {
            return EnumSet.of(SELF_MODIFIED);
        }
        if (held) {
            return EnumSet.of(OK);
        }
        boolean othersLock = othersLock(version.row, own, wanted);
        if (wanted == RowLock.KEY_SHARE) {
            return follow(version, own, othersLock);
        }
        Set<TupleOutcome> answers = mayChange(version, own, wanted);
        if (answers.remove(BEING_MODIFIED)) {
            answers.add(WOULD_BLOCK);
        }
        return answers;
    }

    /**
     * Down the chain, as far as no key has changed. Who updates a row after locking it FOR UPDATE
     * may be taken for one who changed the key, as in PostgreSQL.
     */
    private static Set<TupleOutcome> follow(Version from, Transaction own, boolean othersLock) {
        Set<TupleOutcome> answers = EnumSet.noneOf(TupleOutcome.class);
        for (Version at = from; at.isReplaced() && at.replacer.of != own; at = at.next) {
            Work replacer = at.replacer;
            boolean perhaps =
                    at.row.locks.stream()
                            .anyMatch(
                                    lock ->
                                            lock.by.of == replacer.of
                                                    && !lock.by.aborted
                                                    && lock.lock == RowLock.UPDATE);
            if (perhaps || at.replacedWith == RowLock.UPDATE) {
                answers.add(replacer.isLive() ? WOULD_BLOCK : at.next == null ? DELETED : UPDATED);
            }
            if (at.replacedWith == RowLock.UPDATE) {
                return answers;
            }
        }
        answers.add(othersLock ? WOULD_BLOCK : OK);
        return answers;
    }

    void lock(Version version, Work by, RowLock lock) {
        version.row.locks.add(new Lock(by, lock));
    }

    /**
     * @return the new version
     */
    Version update(
            Version version, long tid, int key, String text, RowLock with, Work by, int command) {
        Version next = new Version(version.row, tid, key, text, by, command);
        replace(version, next, with, by, command);
        versions.add(next);
        return next;
    }

    void delete(Version version, Work by, int command) {
        replace(version, null, RowLock.UPDATE, by, command);
    }

    private void replace(Version version, Version next, RowLock with, Work by, int command) {
        version.next = next;
        version.replacer = by;
        version.replaced = command;
        version.replacedWith = with;
        lock(version, by, with);
    }
}
