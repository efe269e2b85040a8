package org.pgkernel.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import org.junit.jupiter.api.Test;

class ProgressTest {
    @Test
    void timeLeftGoesByTheStepsDone() {
        assertEquals("50 of 200, about 12 s left", Progress.standing(4_000_000_000L, 50, 200));
    }

    @Test
    void workThatEndedEarlyIsNotCalledDone() {
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        try (Progress progress = new Progress(new PrintStream(text, true), "runs", 3)) {
            progress.at(2);
        }
        assertTrue(text.toString().startsWith("runs: stopped after "), text.toString());
    }
}
