package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.RefusedException;

class LockFileTest {
    @TempDir Path dir;

    private final PosixDisk disk = new PosixDisk();

    @Test
    void theFirstLineIsOurProcessIdAndTheFileGoesOnClose() throws IOException {
        Path file = dir.resolve("postmaster.pid");
        try (LockFile lock = LockFile.take(disk, dir.toString(), Clock.systemUTC())) {
            assertEquals(
                    Long.toString(ProcessHandle.current().pid()), Files.readAllLines(file).get(0));
            assertEquals(dir.toString(), Files.readAllLines(file).get(1));
        }
        assertFalse(Files.exists(file));
    }

    @Test
    void aDirectoryOpenInThisProcessCannotBeOpenedAgain() {
        try (LockFile lock = LockFile.take(disk, dir.toString(), Clock.systemUTC())) {
            RefusedException e =
                    assertThrows(
                            RefusedException.class,
                            () -> LockFile.take(disk, dir.toString(), Clock.systemUTC()));
            assertTrue(e.getMessage().contains("is running"), e.getMessage());
        }
        LockFile.take(disk, dir.toString(), Clock.systemUTC()).close();
    }

    @Test
    void aLiveServerIsRespected() throws Exception {
        Process other = new ProcessBuilder("sleep", "60").start();
        try {
            Files.writeString(dir.resolve("postmaster.pid"), other.pid() + "\n" + dir + "\n");
            RefusedException e =
                    assertThrows(
                            RefusedException.class,
                            () -> LockFile.take(disk, dir.toString(), Clock.systemUTC()));
            assertTrue(e.getMessage().contains("process " + other.pid()), e.getMessage());
            assertTrue(Files.exists(dir.resolve("postmaster.pid")));
        } finally {
            other.destroyForcibly().waitFor();
        }
        // The same file once its owner is gone.
        LockFile.take(disk, dir.toString(), Clock.systemUTC()).close();
    }

    @Test
    void aSingleUserServersNegativeProcessIdCountsToo() throws Exception {
        Process other = new ProcessBuilder("sleep", "60").start();
        try {
            Files.writeString(dir.resolve("postmaster.pid"), "-" + other.pid() + "\n");
            assertThrows(RefusedException.class, () -> LockFile.check(disk, dir.toString()));
        } finally {
            other.destroyForcibly().waitFor();
        }
    }

    @Test
    void aFileThatAppearsMeanwhileIsLookedAtBeforeItIsRemoved() throws Exception {
        Process other = new ProcessBuilder("sleep", "60").start();
        try {
            // The other server's file comes between a look that finds none and what follows.
            AtomicBoolean came = new AtomicBoolean();
            Disk late =
                    (Disk)
                            Proxy.newProxyInstance(
                                    getClass().getClassLoader(),
                                    new Class<?>[] {Disk.class},
                                    (proxy, method, arguments) -> {
                                        if (method.getName().equals("create")
                                                || method.getName().equals("unlink")) {
                                            if (!came.getAndSet(true)) {
                                                Files.writeString(
                                                        dir.resolve("postmaster.pid"),
                                                        other.pid() + "\n" + dir + "\n");
                                            }
                                        }
                                        return call(method, arguments);
                                    });
            assertThrows(
                    RefusedException.class,
                    () -> LockFile.take(late, dir.toString(), Clock.systemUTC()));
            assertEquals(
                    Long.toString(other.pid()),
                    Files.readAllLines(dir.resolve("postmaster.pid")).get(0));
        } finally {
            other.destroyForcibly().waitFor();
        }
    }

    @Test
    void aFileThatCannotBeWrittenIsNotLeftBehind() {
        Disk full =
                (Disk)
                        Proxy.newProxyInstance(
                                getClass().getClassLoader(),
                                new Class<?>[] {Disk.class},
                                (proxy, method, arguments) -> {
                                    Object result = call(method, arguments);
                                    return !method.getName().equals("create")
                                            ? result
                                            : Proxy.newProxyInstance(
                                                    getClass().getClassLoader(),
                                                    new Class<?>[] {DiskFile.class},
                                                    (p, m, a) -> {
                                                        if (m.getName().equals("write")) {
                                                            throw new DiskException(
                                                                    "could not write",
                                                                    "postmaster.pid",
                                                                    DiskException.ENOSPC);
                                                        }
                                                        if (m.getName().equals("close")) {
                                                            ((DiskFile) result).close();
                                                        }
                                                        return null;
                                                    });
                                });
        assertThrows(
                DiskException.class, () -> LockFile.take(full, dir.toString(), Clock.systemUTC()));
        assertFalse(Files.exists(dir.resolve("postmaster.pid")));
    }

    private Object call(Method method, Object[] arguments) throws Throwable {
        try {
            return method.invoke(disk, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    @Test
    void emptyOrSenselessLockFilesAreRefused() throws IOException {
        Files.writeString(dir.resolve("postmaster.pid"), "");
        assertThrows(RefusedException.class, () -> LockFile.check(disk, dir.toString()));
        Files.writeString(dir.resolve("postmaster.pid"), "hello\n");
        assertThrows(RefusedException.class, () -> LockFile.check(disk, dir.toString()));
        Files.writeString(dir.resolve("postmaster.pid"), "0\n");
        assertThrows(RefusedException.class, () -> LockFile.check(disk, dir.toString()));
    }
}
