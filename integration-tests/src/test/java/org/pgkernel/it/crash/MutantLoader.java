package org.pgkernel.it.crash;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassModel;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.CodeModel;
import java.lang.classfile.MethodModel;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.util.List;

/**
 * Loads the kernel a second time with some methods that do nothing: a kernel that is wrong on
 * purpose, without a hook for it in the kernel. Words and the disk seam (kernel-base) and the
 * testkit are the ones of everybody.
 */
final class MutantLoader extends ClassLoader {
    private static final String OURS = "org.pgkernel.";
    private static final List<String> SHARED =
            List.of("org.pgkernel.base.", "org.pgkernel.testkit.");

    /** A method that returns at once, with 0, false or null. All of that name. */
    record Idle(String className, String method) {}

    private final List<Idle> idle;
    private int replaced;

    MutantLoader(List<Idle> idle) {
        super(MutantLoader.class.getClassLoader());
        this.idle = idle;
    }

    /** How many methods were made idle so far: classes load late. */
    int replaced() {
        return replaced;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        synchronized (getClassLoadingLock(name)) {
            if (!name.startsWith(OURS) || SHARED.stream().anyMatch(name::startsWith)) {
                return super.loadClass(name, resolve);
            }
            Class<?> loaded = findLoadedClass(name);
            return loaded == null ? define(name) : loaded;
        }
    }

    private Class<?> define(String name) throws ClassNotFoundException {
        try (InputStream in = getResourceAsStream(name.replace('.', '/') + ".class")) {
            if (in == null) {
                throw new ClassNotFoundException(name);
            }
            byte[] bytes = in.readAllBytes();
            for (Idle each : idle) {
                if (each.className.equals(name)) {
                    bytes = withIdle(bytes, each.method);
                }
            }
            return defineClass(name, bytes, 0, bytes.length);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private byte[] withIdle(byte[] bytes, String method) {
        ClassFile file = ClassFile.of();
        ClassModel model = file.parse(bytes);
        for (MethodModel each : model.methods()) {
            boolean found = isNamed(each, method);
            replaced += found ? 1 : 0;
        }
        return file.transformClass(
                model,
                ClassTransform.transformingMethods(
                        each -> isNamed(each, method),
                        (builder, element) -> {
                            if (element instanceof CodeModel code) {
                                ClassDesc type =
                                        code.parent().orElseThrow().methodTypeSymbol().returnType();
                                builder.withCode(body -> returnNothing(body, type));
                            } else {
                                builder.with(element);
                            }
                        }));
    }

    private static boolean isNamed(MethodModel method, String name) {
        return method.methodName().equalsString(name) && method.code().isPresent();
    }

    private static void returnNothing(CodeBuilder body, ClassDesc type) {
        if (type.equals(ConstantDescs.CD_void)) {
            body.return_();
        } else if (type.equals(ConstantDescs.CD_long)) {
            body.lconst_0().lreturn();
        } else if (type.isPrimitive()) {
            body.iconst_0().ireturn();
        } else {
            body.aconst_null().areturn();
        }
    }
}
