package org.pgkernel.cluster;

import java.nio.charset.StandardCharsets;
import java.util.Locale;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.recovery.Directories;

/**
 * The one server setting that a checkpoint carries, from the configuration files; everything else
 * comes from the control file.
 */
final class ServerSettings {
    private static final int MAX_LENGTH = 1 << 20;

    private ServerSettings() {}

    /**
     * The last full_page_writes in postgresql.conf and postgresql.auto.conf; null when neither sets
     * it. Includes are not followed.
     */
    static Boolean fullPageWrites(Disk disk, String dataDirectory) {
        Boolean value = last(disk, dataDirectory + "/postgresql.conf");
        Boolean auto = last(disk, dataDirectory + "/postgresql.auto.conf");
        return auto != null ? auto : value;
    }

    private static Boolean last(Disk disk, String path) {
        byte[] bytes = Directories.readFile(disk, path, MAX_LENGTH);
        if (bytes == null) {
            return null;
        }
        Boolean last = null;
        for (String line : new String(bytes, StandardCharsets.UTF_8).split("\n")) {
            String text = line.strip();
            int comment = text.indexOf('#');
            if (comment >= 0) {
                text = text.substring(0, comment).strip();
            }
            if (text.toLowerCase(Locale.ROOT).startsWith("full_page_writes")) {
                String rest = text.substring("full_page_writes".length()).strip();
                Boolean parsed =
                        parse(
                                (rest.startsWith("=") ? rest.substring(1).strip() : rest)
                                        .replace("'", "")
                                        .toLowerCase(Locale.ROOT));
                last = parsed == null ? last : parsed;
            }
        }
        return last;
    }

    /** (PostgreSQL: parse_bool, bool.c; unambiguous beginnings count.) */
    static Boolean parse(String word) {
        if (word.isEmpty()) {
            return null;
        }
        if ("true".startsWith(word)
                || "yes".startsWith(word)
                || word.equals("on")
                || word.equals("1")) {
            return true;
        }
        if ("false".startsWith(word)
                || "no".startsWith(word)
                || word.length() > 1 && "off".startsWith(word)
                || word.equals("0")) {
            return false;
        }
        return null;
    }
}
