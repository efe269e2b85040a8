package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.module.ModuleDescriptor;
import java.net.URI;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.pgkernel.recovery.RecoveryModuleProvider;

/**
 * A provider named only in module-info is not found on the class path, and one named only in
 * META-INF/services not on the module path; both fail silently. So the two lists must be the same
 * in every module.
 */
class ServiceProvidersTest {
    @Test
    void moduleInfoAndMetaInfServicesNameTheSameProviders() throws Exception {
        Set<String> modules = new TreeSet<>();
        for (URL url :
                Collections.list(getClass().getClassLoader().getResources("module-info.class"))) {
            ModuleDescriptor descriptor;
            try (InputStream in = url.openStream()) {
                descriptor = ModuleDescriptor.read(in);
            }
            if (!descriptor.name().startsWith("org.pgkernel.")) {
                continue;
            }
            modules.add(descriptor.name());
            TreeMap<String, Set<String>> declared = new TreeMap<>();
            descriptor
                    .provides()
                    .forEach(
                            provides ->
                                    declared.put(
                                            provides.service(),
                                            new TreeSet<>(provides.providers())));
            String root =
                    url.toString()
                            .substring(0, url.toString().length() - "module-info.class".length());
            TreeMap<String, Set<String>> listed = new TreeMap<>();
            Set<String> services = new TreeSet<>(declared.keySet());
            services.add(RecoveryModuleProvider.class.getName());
            for (String service : services) {
                Set<String> names = read(URI.create(root + "META-INF/services/" + service).toURL());
                if (!names.isEmpty()) {
                    listed.put(service, names);
                }
            }
            assertEquals(declared, listed, descriptor.name());
        }
        assertTrue(
                modules.containsAll(
                        List.of(
                                "org.pgkernel.base",
                                "org.pgkernel.recovery",
                                "org.pgkernel.xact",
                                "org.pgkernel.fsm",
                                "org.pgkernel.heap",
                                "org.pgkernel.index",
                                "org.pgkernel.cluster")),
                "module descriptors seen: " + modules);
    }

    @Test
    void everyModuleWithRedoIsFoundOnTheClassPath() {
        List<String> found = new ArrayList<>();
        ServiceLoader.load(RecoveryModuleProvider.class)
                .forEach(provider -> found.add(provider.name()));
        Collections.sort(found);
        assertEquals(
                List.of(
                        "kernel-fsm",
                        "kernel-heap",
                        "kernel-index",
                        "kernel-recovery",
                        "kernel-xact"),
                found);
    }

    private static Set<String> read(URL list) {
        Set<String> names = new TreeSet<>();
        try (BufferedReader reader =
                new BufferedReader(
                        new InputStreamReader(list.openStream(), StandardCharsets.UTF_8))) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                String name = line.replaceFirst("#.*", "").strip();
                if (!name.isEmpty()) {
                    names.add(name);
                }
            }
        } catch (IOException e) {
            // No such file: no provider.
        }
        return names;
    }
}
