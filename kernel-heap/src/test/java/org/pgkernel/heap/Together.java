package org.pgkernel.heap;

import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * Runs work of a test in several threads. The first failure is thrown at once; who hangs then, or
 * because of a deadlock that the test is about, is left behind in a daemon thread.
 */
final class Together {
    private static final int PATIENCE_SECONDS = 120;

    private Together() {}

    @SafeVarargs
    static void run(Callable<?>... work) throws Exception {
        ExecutorService threads =
                Executors.newFixedThreadPool(
                        work.length,
                        task -> {
                            Thread thread = new Thread(task);
                            thread.setDaemon(true);
                            return thread;
                        });
        try {
            ExecutorCompletionService<Object> running = new ExecutorCompletionService<>(threads);
            for (Callable<?> each : work) {
                running.submit(each::call);
            }
            for (int i = 0; i < work.length; i++) {
                Future<Object> done = running.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
                if (done == null) {
                    throw new AssertionError("somebody waits for ever");
                }
                done.get();
            }
        } catch (ExecutionException e) {
            throw new AssertionError(e.getCause());
        } finally {
            threads.shutdownNow();
        }
    }
}
