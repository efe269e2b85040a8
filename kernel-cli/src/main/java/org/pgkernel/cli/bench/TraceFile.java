package org.pgkernel.cli.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.MalformedInputException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.cli.Sentences;
import org.pgkernel.cli.UserException;

/**
 * A trace that somebody recorded: a line a page, {@code spc db rel fork block} with blanks or
 * commas between; the fork by its number. Empty lines, lines that begin with {@code #}, and a first
 * line with these names are passed over.
 */
final class TraceFile {
    private static final String FORM = "spc db rel fork block";
    private static final int FIELDS = 5;
    private static final long MOST = 0xFFFFFFFFL;
    private static final long LAST_BLOCK = 0xFFFFFFFEL;

    private TraceFile() {}

    /**
     * @throws UserException in one sentence, with the line's number
     */
    static Trace read(Path file) {
        Map<Trace.Page, Integer> numbers = new HashMap<>();
        List<Trace.Page> pages = new ArrayList<>();
        int[] uses = new int[1024];
        int count = 0;
        long line = 0;
        try (BufferedReader in = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
            for (String text; (text = in.readLine()) != null; ) {
                line++;
                String[] fields = text.strip().split("\\s*,\\s*|\\s+");
                if (isPassedOver(text.strip(), fields, line)) {
                    continue;
                }
                Trace.Page page = page(text.strip(), fields, line, file);
                Integer number = numbers.putIfAbsent(page, pages.size());
                if (number == null) {
                    number = pages.size();
                    pages.add(page);
                }
                if (count == uses.length) {
                    uses = Arrays.copyOf(uses, count * 2);
                }
                uses[count++] = number;
            }
        } catch (MalformedInputException e) {
            throw new UserException("the trace is no text, near line " + line + ": file=" + file);
        } catch (IOException e) {
            throw new UserException("cannot read the trace, " + Sentences.of(e), e);
        }
        if (count == 0) {
            throw new UserException("the trace is empty: file=" + file);
        }
        return new Trace(
                file.getFileName().toString(),
                pages.toArray(Trace.Page[]::new),
                Arrays.copyOf(uses, count));
    }

    private static boolean isPassedOver(String text, String[] fields, long line) {
        return text.isEmpty()
                || text.startsWith("#")
                || line == 1 && String.join(" ", fields).equals(FORM);
    }

    private static Trace.Page page(String text, String[] fields, long line, Path file) {
        if (fields.length != FIELDS) {
            throw bad("has " + fields.length + " fields, not 5 (" + FORM + ")", text, line, file);
        }
        int[] values = new int[FIELDS];
        for (int i = 0; i < FIELDS; i++) {
            long value;
            try {
                value = Long.parseLong(fields[i]);
            } catch (NumberFormatException e) {
                throw bad("has \"" + fields[i] + "\" where a number is due", text, line, file);
            }
            long most = i == 3 ? ForkNumber.COUNT - 1 : i == 4 ? LAST_BLOCK : MOST;
            if (value < 0 || value > most) {
                String name = FORM.split(" ")[i];
                throw bad(name + " is not between 0 and " + most, text, line, file);
            }
            values[i] = (int) value;
        }
        return new Trace.Page(values[0], values[1], values[2], values[3], values[4]);
    }

    private static UserException bad(String what, String text, long line, Path file) {
        String shown = text.length() > 60 ? text.substring(0, 60) + "..." : text;
        return new UserException(
                "line " + line + " of the trace: " + what + ": \"" + shown + "\" file=" + file);
    }
}
