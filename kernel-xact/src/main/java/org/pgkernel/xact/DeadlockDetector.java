package org.pgkernel.xact;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Looks for circles of sessions that wait for each other, with the whole lock table locked.
 *
 * <p>A session waits <em>hard</em> for who holds its lock in a mode that conflicts, or runs the
 * transaction whose end it awaits. It waits <em>softly</em> for who conflicts with it and only
 * stands before it in the queue. A circle with soft edges can be opened: one of them is turned
 * around, the later waiter moves before the earlier one. That may close another circle, which is
 * opened in the same way, and so on until there is none or no soft edge is left to try; then it is
 * a deadlock. Queues otherwise keep their order as far as they can.
 *
 * <p>Only circles through the session that looks, and through those that it would move, count:
 * others are found by who waits in them. (PostgreSQL: deadlock.c.)
 */
final class DeadlockDetector {
    private record Edge(SessionLocks waiter, SessionLocks blocker, LockEntry queue) {
        boolean isSoft() {
            return queue != null;
        }
    }

    private final LockManager manager;

    /** Edges that are to be turned around. */
    private final List<Edge> turned = new ArrayList<>();

    /** The queues as the turned edges would have them; others are as they are. */
    private final Map<LockEntry, List<SessionLocks>> orders = new HashMap<>();

    // Of one search for a circle.
    private final Set<SessionLocks> visited = new HashSet<>();
    private final List<Edge> path = new ArrayList<>();

    DeadlockDetector(LockManager manager) {
        this.manager = manager;
    }

    /**
     * @param session waits
     * @return the circle in words, null if there is none any more
     */
    String check(SessionLocks session) {
        String circle = isCircle(session) ? describe(session) : null;
        if (circle == null) {
            return null;
        }
        if (!open(session)) {
            return circle;
        }
        assert !orders.isEmpty() : "the circle went without a change";
        orders.forEach(
                (entry, order) -> {
                    for (int i = 0; i < order.size(); i++) {
                        entry.order(i, order.get(i));
                    }
                });
        orders.keySet().forEach(manager::serve);
        return null;
    }

    /** (PostgreSQL: DeadLockCheckRecurse, TestConfiguration.) */
    private boolean open(SessionLocks session) {
        if (!reorder()) {
            return false;
        }
        List<Edge> circle = null;
        for (Edge edge : turned) {
            for (SessionLocks moved : List.of(edge.waiter, edge.blocker)) {
                if (isCircle(moved)) {
                    circle = softEdges();
                    if (circle.isEmpty()) {
                        return false;
                    }
                }
            }
        }
        if (isCircle(session)) {
            circle = softEdges();
        }
        if (circle == null) {
            return true;
        }
        for (Edge edge : circle) {
            turned.add(edge);
            if (open(session)) {
                return true;
            }
            turned.removeLast();
        }
        return false;
    }

    private List<Edge> softEdges() {
        return path.stream().filter(Edge::isSoft).toList();
    }

    private boolean isCircle(SessionLocks session) {
        visited.clear();
        path.clear();
        return leadsTo(session, session);
    }

    /**
     * True if the session waits for the other one, through whomever; {@link #path} tells how.
     * (PostgreSQL: FindLockCycleRecurse.)
     */
    private boolean leadsTo(SessionLocks session, SessionLocks end) {
        if (!session.isWaiting()) {
            return false;
        }
        LockEntry entry = session.waitEntry();
        if (session.waitHolder() == null) {
            SessionLocks runner = manager.runs(session.waitTopXid());
            return runner != null && follow(new Edge(session, runner, null), end);
        }
        int conflicts = session.waitMode().conflicts;
        for (LockHolder holder = entry.holders; holder != null; holder = holder.next) {
            if (holder.session != session
                    && (holder.holdMask & conflicts) != 0
                    && follow(new Edge(session, holder.session, null), end)) {
                return true;
            }
        }
        for (SessionLocks other : queue(entry)) {
            if (other == session) {
                break;
            }
            boolean isHard = (other.waitHolder().holdMask & conflicts) != 0;
            if (!isHard
                    && (other.waitMode().bit() & conflicts) != 0
                    && follow(new Edge(session, other, entry), end)) {
                return true;
            }
        }
        return false;
    }

    private boolean follow(Edge edge, SessionLocks end) {
        path.add(edge);
        if (edge.blocker == end || visited.add(edge.blocker) && leadsTo(edge.blocker, end)) {
            return true;
        }
        path.removeLast();
        return false;
    }

    private List<SessionLocks> queue(LockEntry entry) {
        List<SessionLocks> order = orders.get(entry);
        return order != null ? order : inOrder(entry);
    }

    private static List<SessionLocks> inOrder(LockEntry entry) {
        List<SessionLocks> order = new ArrayList<>();
        for (int i = 0; i < entry.waiting(); i++) {
            order.add(entry.waiter(i));
        }
        return order;
    }

    /**
     * Orders the queues of the turned edges.
     *
     * @return false if the edges contradict each other (PostgreSQL: ExpandConstraints)
     */
    private boolean reorder() {
        orders.clear();
        for (Edge edge : turned) {
            if (!orders.containsKey(edge.queue)) {
                List<SessionLocks> order = sort(edge.queue);
                if (order == null) {
                    return false;
                }
                orders.put(edge.queue, order);
            }
        }
        return true;
    }

    /**
     * From the end: the last one that need not stand before one of those left. (PostgreSQL:
     * TopoSort.)
     */
    private List<SessionLocks> sort(LockEntry entry) {
        List<SessionLocks> left = inOrder(entry);
        List<SessionLocks> sorted = new ArrayList<>();
        while (!left.isEmpty()) {
            int last = left.size() - 1;
            while (last >= 0 && mustPrecede(left.get(last), left, entry)) {
                last--;
            }
            if (last < 0) {
                return null;
            }
            sorted.addFirst(left.remove(last));
        }
        return sorted;
    }

    private boolean mustPrecede(SessionLocks waiter, List<SessionLocks> left, LockEntry entry) {
        for (Edge edge : turned) {
            if (edge.queue == entry && edge.waiter == waiter && left.contains(edge.blocker)) {
                return true;
            }
        }
        return false;
    }

    private String describe(SessionLocks victim) {
        StringBuilder text = new StringBuilder("deadlock: ");
        for (Edge edge : path) {
            text.append(edge.waiter)
                    .append(edge.isSoft() ? ", behind " : ", which is blocked by ")
                    .append(edge.blocker.owner())
                    .append("; ");
        }
        return text.append(victim.owner()).append(" gives way").toString();
    }
}
