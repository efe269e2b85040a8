package org.pgkernel.base;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;

/** The real disk with a hook before and after each call on a file. */
abstract class FaultyDisk {
    /** Called before the file's method runs; may throw. */
    void before(String method) {}

    /** Called after the file's method ran, with its arguments. */
    void after(String method, Object[] arguments) {}

    Disk over(Disk disk) {
        return proxy(Disk.class, disk, true);
    }

    private <T> T proxy(Class<T> type, T target, boolean isDisk) {
        Object proxy =
                Proxy.newProxyInstance(
                        type.getClassLoader(),
                        new Class<?>[] {type},
                        (self, method, arguments) -> {
                            if (!isDisk) {
                                before(method.getName());
                            }
                            Object result;
                            try {
                                result = method.invoke(target, arguments);
                            } catch (InvocationTargetException e) {
                                throw e.getCause();
                            }
                            if (!isDisk) {
                                after(method.getName(), arguments);
                            }
                            return result instanceof DiskFile file
                                    ? proxy(DiskFile.class, file, false)
                                    : result;
                        });
        return type.cast(proxy);
    }
}
