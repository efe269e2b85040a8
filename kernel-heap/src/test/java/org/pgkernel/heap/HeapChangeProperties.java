package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.pgkernel.fsm.VisibilityMap;

/**
 * Sessions that insert, update, delete and lock rows at random, beside {@link HeapModel}: each
 * answer is the model's, each snapshot sees the model's rows; at the end redo makes the same pages,
 * and recovery after a crash finds what had committed (HEAP-40, HEAP-41).
 */
class HeapChangeProperties {
    private static final TupleDescriptor COLUMNS =
            new TupleDescriptor(
                    List.of(
                            Attribute.of("key", "int4"),
                            Attribute.of("indexed", "int4"),
                            Attribute.of("text", "text")),
                    Set.of("indexed"),
                    Set.of("key"));
    private static final int SESSIONS = 3;

    private static final class Client {
        final HeapRig.Session rig;
        HeapModel.Transaction transaction;
        HeapModel.Snapshot snapshot;

        Client(HeapRig.Session rig) {
            this.rig = rig;
        }
    }

    static final class Run {
        final Random random;
        final HeapRig rig;
        final HeapRelation table;
        final HeapModel model = new HeapModel();
        final List<Client> clients = new ArrayList<>();
        final Map<TupleOutcome, Integer> outcomes = new EnumMap<>(TupleOutcome.class);
        final boolean longValues;
        final List<String> log = new ArrayList<>();
        int keys;

        Run(long seed) {
            random = new Random(seed);
            longValues = random.nextInt(3) == 0;
            rig = new HeapRig(seed);
            int fillFactor = random.nextBoolean() ? 100 : 70;
            table = table(rig, fillFactor);
            for (int i = 0; i < SESSIONS; i++) {
                clients.add(new Client(rig.session()));
            }
        }

        static HeapRelation table(HeapRig rig, int fillFactor) {
            return rig.table(20000, COLUMNS, fillFactor, rig.table(20001, ToastStore.COLUMNS));
        }

        Run run(int steps) {
            try (rig) {
                for (int i = 0; i < steps; i++) {
                    step(clients.get(random.nextInt(SESSIONS)));
                    for (Client client : clients) {
                        if (client.transaction != null && random.nextInt(4) == 0) {
                            compare(client);
                        }
                    }
                    if (random.nextInt(60) == 0) {
                        settle();
                    }
                }
                rig.checkRedo(table, table.toast());
                crash();
                settle();
                rig.checkRedo(table, table.toast());
            }
            return this;
        }

        void compare(Client client) {
            TreeMap<Long, String> expected = new TreeMap<>();
            model.seen(client.snapshot).forEach(v -> expected.put(v.tid, v.text));
            assertEquals(expected, client.rig.rows(table, client.rig.mvcc));
        }

        void begin(Client client) {
            client.rig.begin();
            client.transaction = new HeapModel.Transaction();
            client.snapshot = model.snapshot(client.transaction, 0);
        }

        void end(Client client, boolean commit) {
            if (commit) {
                client.rig.commit();
                model.commit(client.transaction);
            } else {
                client.rig.rollback();
                client.transaction.rollback();
            }
            log.add(clients.indexOf(client) + (commit ? " commits" : " rolls back"));
            client.transaction = null;
        }

        void settle() {
            for (Client client : clients) {
                if (client.transaction != null) {
                    end(client, random.nextBoolean());
                }
            }
            model.forgetDead();
            rig.settle(table, VisibilityMap.VALID_BITS);
            if (random.nextInt(4) == 0) {
                rig.checkpoint();
            }
        }

        void crash() {
            long outcome = random.nextLong();
            List<String> committed =
                    model.seen(model.snapshot(null, 0)).stream().map(v -> v.text).sorted().toList();
            try (HeapRig after = rig.recovered(rig.disk.found(outcome))) {
                HeapRelation found = table(after, 100);
                HeapRig.Session reader = after.session();
                reader.begin();
                TreeMap<Long, String> rows = reader.rows(found, reader.mvcc);
                assertEquals(committed, rows.values().stream().sorted().toList());
                for (long tid : rows.keySet()) {
                    assertEquals(TupleOutcome.OK, reader.lock(found, tid, RowLock.UPDATE));
                    assertEquals(TupleOutcome.OK, reader.update(found, tid, 1, 1, "after"));
                }
                reader.commit();
            }
        }

        void step(Client client) {
            if (client.transaction == null) {
                begin(client);
                return;
            }
            HeapModel.Transaction transaction = client.transaction;
            int levels = transaction.levels.size();
            switch (random.nextInt(24)) {
                case 0, 1 -> end(client, true);
                case 2 -> end(client, false);
                case 3 -> {
                    assertEquals(transaction.savepoint(), client.rig.session.savepoint());
                    log.add(clients.indexOf(client) + " savepoint");
                }
                case 4 -> {
                    if (levels > 1) {
                        int to = 1 + random.nextInt(levels - 1);
                        client.rig.session.rollbackTo(to);
                        transaction.rollbackTo(to);
                        log.add(clients.indexOf(client) + " rolls back to " + to);
                    }
                }
                case 5 -> {
                    if (levels > 1) {
                        int to = 1 + random.nextInt(levels - 1);
                        client.rig.session.release(to);
                        transaction.release(to);
                        log.add(clients.indexOf(client) + " releases " + to);
                    }
                }
                case 6, 7, 8, 9, 10 -> {
                    client.rig.nextCommand();
                    int command = client.rig.session.commandId(false);
                    client.snapshot = model.snapshot(transaction, command);
                    log.add(clients.indexOf(client) + " next command");
                }
                case 11, 12, 13 -> insert(client);
                default -> change(client);
            }
        }

        private String text(int key, int indexed, String text) {
            return "[" + key + ", " + indexed + ", " + text + "]";
        }

        private String value() {
            int length = random.nextInt(random.nextInt(4) == 0 ? 1500 : 60);
            if (longValues && random.nextInt(4) == 0) {
                length = 2500 + random.nextInt(3000);
            }
            byte[] bytes = new byte[length];
            for (int i = 0; i < length; i++) {
                bytes[i] = (byte) ('!' + random.nextInt(90));
            }
            return new String(bytes, StandardCharsets.US_ASCII);
        }

        private void insert(Client client) {
            int key = ++keys;
            String value = value();
            int command = client.rig.session.commandId(false);
            long tid = client.rig.insert(table, key, 0, value);
            model.insert(tid, key, text(key, 0, value), client.transaction.current(), command);
        }

        private void change(Client client) {
            List<HeapModel.Version> seen = model.seen(client.snapshot);
            if (seen.isEmpty()) {
                return;
            }
            HeapModel.Version version = seen.get(random.nextInt(seen.size()));
            switch (random.nextInt(8)) {
                case 0 -> delete(client, version);
                case 1, 2, 3 -> update(client, version);
                default -> lock(client, version, RowLock.values()[random.nextInt(4)]);
            }
        }

        private void delete(Client client, HeapModel.Version version) {
            int command = client.rig.session.commandId(false);
            Set<TupleOutcome> right = model.mayChange(version, client.transaction, RowLock.UPDATE);
            TupleOutcome outcome = client.rig.delete(table, version.tid);
            check(
                    clients.indexOf(client) + " deletes",
                    right,
                    outcome,
                    version,
                    client.rig.deleter.conflict());
            if (outcome == TupleOutcome.OK) {
                model.delete(version, client.transaction.current(), command);
            }
        }

        private void update(Client client, HeapModel.Version version) {
            int key = random.nextInt(4) == 0 ? ++keys : version.key;
            int indexed = random.nextInt(3);
            String value = value();
            int command = client.rig.session.commandId(false);
            RowLock with = key == version.key ? RowLock.NO_KEY_UPDATE : RowLock.UPDATE;
            Set<TupleOutcome> right = model.mayChange(version, client.transaction, with);
            TupleOutcome outcome = client.rig.update(table, version.tid, key, indexed, value);
            check(
                    clients.indexOf(client) + " updates with " + with,
                    right,
                    outcome,
                    version,
                    client.rig.updater.conflict());
            if (outcome == TupleOutcome.OK) {
                model.update(
                        version,
                        client.rig.updater.newTid(),
                        key,
                        text(key, indexed, value),
                        with,
                        client.transaction.current(),
                        command);
            }
        }

        private void lock(Client client, HeapModel.Version version, RowLock lock) {
            Set<TupleOutcome> right = model.mayLock(version, client.transaction, lock);
            TupleOutcome outcome = client.rig.lock(table, version.tid, lock);
            check(
                    clients.indexOf(client) + " locks " + lock,
                    right,
                    outcome,
                    version,
                    client.rig.locker.conflict());
            if (outcome == TupleOutcome.OK) {
                model.lock(version, client.transaction.current(), lock);
            }
        }

        private void check(
                String what,
                Set<TupleOutcome> right,
                TupleOutcome outcome,
                HeapModel.Version version,
                TupleConflict conflict) {
            log.add(what + " " + TupleId.format(version.tid) + ": " + outcome);
            assertTrue(
                    right.contains(outcome),
                    () -> outcome + " instead of " + right + " after\n" + String.join("\n", log));
            outcomes.merge(outcome, 1, Integer::sum);
            if (outcome == TupleOutcome.UPDATED && version.isReplaced()) {
                assertEquals(version.next.tid, conflict.nextTid());
            }
        }
    }

    @Property(tries = 150)
    void everyAnswerIsTheModelsAndRedoMakesTheSamePages(@ForAll long seed) {
        new Run(Long.getLong("heap.seed", seed)).run(250);
    }

    @Property(tries = 1)
    void theRunsMeetEveryOutcome() {
        Map<TupleOutcome, Integer> outcomes = new EnumMap<>(TupleOutcome.class);
        for (long seed = 0; seed < 30; seed++) {
            new Run(seed).run(250).outcomes.forEach((k, v) -> outcomes.merge(k, v, Integer::sum));
        }
        for (TupleOutcome outcome : TupleOutcome.values()) {
            if (outcome != TupleOutcome.INVISIBLE) {
                assertTrue(outcomes.getOrDefault(outcome, 0) > 20, outcomes.toString());
            }
        }
    }
}
