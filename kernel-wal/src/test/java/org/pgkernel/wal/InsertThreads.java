package org.pgkernel.wal;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Threads that begin together; their results, or the first failure. */
final class InsertThreads {
    interface Work<T> {
        T run(int thread);
    }

    private InsertThreads() {}

    static <T> List<T> run(int threads, Work<T> work) {
        try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
            CyclicBarrier barrier = new CyclicBarrier(threads);
            List<Future<T>> futures = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                int thread = i;
                futures.add(
                        executor.submit(
                                (Callable<T>)
                                        () -> {
                                            barrier.await();
                                            return work.run(thread);
                                        }));
            }
            List<T> results = new ArrayList<>();
            for (Future<T> future : futures) {
                results.add(future.get());
            }
            return results;
        } catch (ExecutionException | InterruptedException e) {
            throw new AssertionError(e.getCause() == null ? e : e.getCause());
        }
    }
}
