package org.pgkernel.xact;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DiskException;

/**
 * The real disk, with a list of the syncs that were asked for and a switch that makes them fail.
 */
final class RecordingDisk {
    final List<String> syncs = new ArrayList<>();
    boolean failSyncs;
    final Disk disk;

    RecordingDisk() {
        Disk real = new PosixDisk();
        disk =
                (Disk)
                        Proxy.newProxyInstance(
                                Disk.class.getClassLoader(),
                                new Class<?>[] {Disk.class},
                                (proxy, method, args) -> {
                                    if (method.getName().equals("syncDirectory")) {
                                        sync((String) args[0]);
                                    }
                                    Object result = call(real, method, args);
                                    return result instanceof DiskFile file ? wrap(file) : result;
                                });
    }

    private DiskFile wrap(DiskFile file) {
        return (DiskFile)
                Proxy.newProxyInstance(
                        Disk.class.getClassLoader(),
                        new Class<?>[] {DiskFile.class},
                        (proxy, method, args) -> {
                            if (method.getName().equals("sync")
                                    || method.getName().equals("dataSync")) {
                                sync(file.path());
                            }
                            return call(file, method, args);
                        });
    }

    private void sync(String path) {
        if (failSyncs) {
            throw new DiskException("could not sync. file=" + path, DiskException.EIO);
        }
        syncs.add(path);
    }

    private static Object call(Object target, java.lang.reflect.Method method, Object[] args)
            throws Throwable {
        try {
            return method.invoke(target, args);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }
}
