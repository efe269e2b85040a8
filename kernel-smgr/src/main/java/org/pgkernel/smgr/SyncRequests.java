package org.pgkernel.smgr;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.StampedLock;
import org.agrona.collections.Long2ObjectHashMap;
import org.agrona.collections.LongHashSet;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;

/**
 * Files to be made durable, and files to be removed, at the next checkpoint: deduplicated,
 * cancelled when the relation goes away. Thread-safe. (PostgreSQL: sync.c.)
 *
 * <p>{@link #process} takes the whole waiting table as its work and leaves a fresh one, so what
 * comes in meanwhile belongs to the next call, even for the file being synced (SMGR-3). A
 * cancellation reaches both tables: it is how {@link #process} tells a file that was dropped from
 * one that was lost. The order a dropper keeps is therefore: cancel, then unlink.
 *
 * <p>The first failure of a sync, or of a close, stops this object for good: the system may have
 * thrown the written pages away, so that a second try would succeed and prove nothing.
 *
 * <p>Not final only so that tests beside it can plant faults.
 */
public class SyncRequests {
    static final int REMOVED = 0;
    static final int ABSENT = 1;
    static final int FAILED = 2;

    private static final System.Logger LOG = System.getLogger("org.pgkernel.smgr");

    private final Disk disk;
    private final String dataDirectory;

    /** One {@link #process} at a time; taken before {@link #lock}. */
    private final Object processing = new Object();

    /**
     * Held shared by whoever makes a call that may report lost writes, until the report is
     * recorded; by {@link #process} exclusively for a moment, before it tells success: the system
     * reports a loss once, so that our own sync of a file may succeed because another thread's
     * close, still on its way to {@link #stop}, was told.
     */
    private final StampedLock reporting = new StampedLock();

    /** Guards every field down to the next comment; no system call under it. */
    private final Object lock = new Object();

    /** Database key to fork key to segments. */
    private Long2ObjectHashMap<Long2ObjectHashMap<ForkRequests>> waiting =
            new Long2ObjectHashMap<>();

    /** What {@link #process} took; empty when it is not at work. */
    private Long2ObjectHashMap<Long2ObjectHashMap<ForkRequests>> taken = new Long2ObjectHashMap<>();

    /** Database keys whose directories got new files or lost some. */
    private LongHashSet directories = new LongHashSet();

    /** Requests in both tables. */
    private int pending;

    private final ArrayDeque<PendingUnlink> unlinks = new ArrayDeque<>();
    private long checkpointCycle;
    private final List<StorageManager> managers = new ArrayList<>(1);

    private final AtomicLong syncs = new AtomicLong();

    /** Set once, by {@link #stop}. */
    private volatile KernelStoppedException stopped;

    /**
     * @param cycle the checkpoint cycle in which it was queued
     */
    private record PendingUnlink(int spcOid, int dbOid, int relNumber, long cycle) {}

    public SyncRequests(Disk disk, String dataDirectory) {
        this.disk = disk;
        this.dataDirectory = dataDirectory;
    }

    /** Queues the sync of one segment. Allocates nothing when it is queued already. */
    public void register(int spcOid, int dbOid, int relNumber, int fork, int segment) {
        synchronized (lock) {
            Long2ObjectHashMap<ForkRequests> database = waiting.get(databaseKey(spcOid, dbOid));
            if (database == null) {
                database = new Long2ObjectHashMap<>();
                waiting.put(databaseKey(spcOid, dbOid), database);
            }
            ForkRequests requests = database.get(forkKey(relNumber, fork));
            if (requests == null) {
                requests = new ForkRequests(spcOid, dbOid, relNumber, fork);
                database.put(forkKey(relNumber, fork), requests);
            }
            if (!requests.segments.get(segment)) {
                requests.segments.set(segment);
                pending++;
            }
        }
    }

    /** Cancels the queued syncs of one fork, all segments. */
    public void forget(int spcOid, int dbOid, int relNumber, int fork) {
        forget(spcOid, dbOid, relNumber, fork, 0);
    }

    /** Cancels the queued syncs of one fork's segments from {@code firstSegment} on. */
    void forget(int spcOid, int dbOid, int relNumber, int fork, int firstSegment) {
        synchronized (lock) {
            Long2ObjectHashMap<ForkRequests> database = waiting.get(databaseKey(spcOid, dbOid));
            ForkRequests requests =
                    database == null ? null : database.get(forkKey(relNumber, fork));
            if (requests != null) {
                pending -= requests.cancelFrom(firstSegment);
                if (firstSegment == 0) {
                    database.remove(forkKey(relNumber, fork));
                }
            }
            if (!taken.isEmpty()) {
                database = taken.get(databaseKey(spcOid, dbOid));
                requests = database == null ? null : database.get(forkKey(relNumber, fork));
                if (requests != null) {
                    pending -= requests.cancelFrom(firstSegment);
                }
            }
        }
    }

    /**
     * Cancels everything queued for a database, in every tablespace, unlinks too. (PostgreSQL:
     * ForgetDatabaseSyncRequests.)
     */
    public void forgetDatabase(int dbOid) {
        synchronized (lock) {
            cancelDatabase(waiting, dbOid);
            cancelDatabase(taken, dbOid);
            waiting.keySet().removeIf(key -> key.intValue() == dbOid);
            unlinks.removeIf(unlink -> unlink.dbOid == dbOid);
            LongHashSet.LongIterator iterator = directories.iterator();
            LongHashSet kept = new LongHashSet();
            while (iterator.hasNext()) {
                long key = iterator.nextValue();
                if ((int) key != dbOid) {
                    kept.add(key);
                }
            }
            directories = kept;
        }
    }

    /** Queues the removal of a kept first segment after the next checkpoint. */
    public void registerUnlink(int spcOid, int dbOid, int relNumber) {
        synchronized (lock) {
            unlinks.add(new PendingUnlink(spcOid, dbOid, relNumber, checkpointCycle));
        }
    }

    /**
     * A checkpoint begins: unlinks queued from here on wait for the next one. (PostgreSQL:
     * SyncPreCheckpoint.)
     */
    public void preCheckpoint() {
        synchronized (lock) {
            checkpointCycle++;
        }
    }

    /**
     * Syncs every file that was queued before the call, then the directories whose names changed. A
     * file that is missing is passed over only if its request turns out to be cancelled.
     * (PostgreSQL: ProcessSyncRequests; it leaves directories alone.)
     *
     * @return files synced
     * @throws KernelStoppedException when a sync fails or a file is missing; every later call
     *     throws, too
     */
    public int process() {
        synchronized (processing) {
            refuseIfStopped();
            ForkRequests[] work;
            LongHashSet newIn;
            synchronized (lock) {
                taken = waiting;
                waiting = new Long2ObjectHashMap<>();
                work =
                        taken.values().stream()
                                .flatMap(database -> database.values().stream())
                                .toArray(ForkRequests[]::new);
                newIn = directories;
                directories = new LongHashSet();
            }
            boolean done = false;
            try {
                int synced = 0;
                for (ForkRequests requests : work) {
                    synced += process(requests);
                }
                LongHashSet.LongIterator iterator = newIn.iterator();
                while (iterator.hasNext()) {
                    syncDirectory(iterator.nextValue());
                }
                reporting.unlockWrite(reporting.writeLock());
                refuseIfStopped();
                synchronized (lock) {
                    taken = new Long2ObjectHashMap<>();
                }
                done = true;
                return synced;
            } finally {
                if (!done) {
                    // Whatever ended the loop, the rest of the work was taken and would not be
                    // offered again.
                    stop("the sync phase was not finished", null);
                }
            }
        }
    }

    /**
     * Removes the files queued before {@link #preCheckpoint}. One that is gone already is fine.
     * (PostgreSQL: SyncPostCheckpoint.)
     */
    public void postCheckpoint() {
        for (; ; ) {
            PendingUnlink unlink;
            synchronized (lock) {
                unlink = unlinks.peek();
                if (unlink == null || unlink.cycle == checkpointCycle) {
                    return;
                }
                unlinks.remove();
            }
            closeRemoved(unlink);
            unlink(path(unlink.spcOid, unlink.dbOid, unlink.relNumber, 0, 0));
            registerDirectory(unlink.spcOid, unlink.dbOid);
            // Again: who asked for a free number in between has found, and kept open, the file.
            closeRemoved(unlink);
        }
    }

    private void closeRemoved(PendingUnlink unlink) {
        for (StorageManager manager : managers()) {
            manager.closeRemoved(unlink.spcOid, unlink.dbOid, unlink.relNumber);
        }
    }

    /** Files and directories made durable so far, immediate syncs among them. */
    public long syncs() {
        return syncs.get();
    }

    /** A file or directory was made durable. */
    private void counted() {
        syncs.incrementAndGet();
    }

    /** How many syncs wait. */
    public int pending() {
        synchronized (lock) {
            return pending;
        }
    }

    /** How many kept first segments wait for their removal. */
    public int pendingUnlinks() {
        synchronized (lock) {
            return unlinks.size();
        }
    }

    /**
     * Remembers that names came or went in a database's directory, which {@link #process} makes
     * durable. Called after the change of the names, and before anybody can put into a new file
     * what a checkpoint must not lose.
     */
    void registerDirectory(int spcOid, int dbOid) {
        synchronized (lock) {
            directories.add(databaseKey(spcOid, dbOid));
        }
    }

    /** A manager that wants to close its handle before a kept segment is removed. */
    void addManager(StorageManager manager) {
        synchronized (lock) {
            managers.add(manager);
        }
    }

    void removeManager(StorageManager manager) {
        synchronized (lock) {
            managers.remove(manager);
        }
    }

    /**
     * Closes a file; the system may report a lost write here.
     *
     * @throws KernelStoppedException when it does
     */
    void close(DiskFile file) {
        long report = reporting.readLock();
        try {
            file.close();
        } catch (DiskException e) {
            throw stop("a close failed", e);
        } finally {
            reporting.unlockRead(report);
        }
    }

    /**
     * Syncs a file now, beside {@link #process}, and closes it.
     *
     * @throws KernelStoppedException when that fails
     */
    void syncNow(DiskFile file) {
        long report = reporting.readLock();
        try (file) {
            file.sync();
            counted();
        } catch (DiskException e) {
            throw stop("an immediate sync failed", e);
        } finally {
            reporting.unlockRead(report);
        }
    }

    /**
     * Records a failure that may have lost writes; the caller throws the result. The first one
     * stays.
     */
    KernelStoppedException stop(String what, DiskException cause) {
        String message =
                "written pages may be lost, "
                        + what
                        + (cause == null ? "" : ": " + cause.getMessage());
        KernelStoppedException exception = new KernelStoppedException(message, cause);
        synchronized (lock) {
            if (stopped == null) {
                stopped = exception;
            }
        }
        return exception;
    }

    /**
     * Removes a file whose relation is gone for good, so that failing is a warning only.
     *
     * @return {@link #REMOVED}, {@link #ABSENT} or {@link #FAILED}
     */
    int unlink(String path) {
        try {
            return disk.unlink(path) ? REMOVED : ABSENT;
        } catch (DiskException e) {
            warn(e);
            return FAILED;
        }
    }

    static void warn(DiskException e) {
        LOG.log(System.Logger.Level.WARNING, e.getMessage());
    }

    private int process(ForkRequests requests) {
        int synced = 0;
        for (int segment = next(requests, 0); segment >= 0; segment = next(requests, segment + 1)) {
            if (sync(requests, segment)) {
                synced++;
            }
            synchronized (lock) {
                if (requests.segments.get(segment)) {
                    requests.segments.clear(segment);
                    pending--;
                }
            }
        }
        return synced;
    }

    /**
     * @return false when the file is missing and its request cancelled
     */
    private boolean sync(ForkRequests requests, int segment) {
        String path =
                path(requests.spcOid, requests.dbOid, requests.relNumber, requests.fork, segment);
        try {
            DiskFile file = disk.openIfExists(path);
            if (file != null) {
                try (file) {
                    file.sync();
                    counted();
                }
                return true;
            }
        } catch (DiskException e) {
            throw stop("a sync failed", e);
        }
        // Whoever removes a file cancels its request first, so that a cancellation is visible by
        // now.
        if (isQueued(requests, segment)) {
            throw stop("a file to be synced has vanished: file=" + path, null);
        }
        return false;
    }

    private void syncDirectory(long key) {
        syncDirectory((int) (key >>> 32), (int) key);
    }

    /**
     * Makes the names in a database's directory durable.
     *
     * @throws KernelStoppedException when that fails
     */
    void syncDirectory(int spcOid, int dbOid) {
        String path = dataDirectory + "/" + RelFileLocator.databasePath(spcOid, dbOid);
        try {
            disk.syncDirectory(path);
            counted();
        } catch (DiskException e) {
            // Its files' own requests tell whether it may be gone.
            if (e.errno() != DiskException.ENOENT) {
                throw stop("a directory could not be synced", e);
            }
        }
    }

    private int next(ForkRequests requests, int from) {
        synchronized (lock) {
            return requests.segments.nextSetBit(from);
        }
    }

    private boolean isQueued(ForkRequests requests, int segment) {
        synchronized (lock) {
            return requests.segments.get(segment);
        }
    }

    private void cancelDatabase(
            Long2ObjectHashMap<Long2ObjectHashMap<ForkRequests>> table, int dbOid) {
        Long2ObjectHashMap<Long2ObjectHashMap<ForkRequests>>.EntryIterator databases =
                table.entrySet().iterator();
        while (databases.hasNext()) {
            databases.next();
            if ((int) databases.getLongKey() == dbOid) {
                for (ForkRequests requests : databases.getValue().values()) {
                    pending -= requests.cancelFrom(0);
                }
            }
        }
    }

    private List<StorageManager> managers() {
        synchronized (lock) {
            return List.copyOf(managers);
        }
    }

    private void refuseIfStopped() {
        KernelStoppedException first = stopped;
        if (first != null) {
            throw new KernelStoppedException(
                    "an earlier sync failed and is not tried again", first);
        }
    }

    private String path(int spcOid, int dbOid, int relNumber, int fork, int segment) {
        String first =
                dataDirectory
                        + "/"
                        + new RelFileLocator(spcOid, dbOid, relNumber).path(ForkNumber.of(fork));
        return segment == 0 ? first : first + "." + segment;
    }

    private static long databaseKey(int spcOid, int dbOid) {
        return (long) spcOid << 32 | dbOid & 0xFFFFFFFFL;
    }

    private static long forkKey(int relNumber, int fork) {
        return (long) relNumber << 32 | fork;
    }
}
