package org.pgkernel.testkit.golden;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GoldenScriptTest {
    private static final String APART =
            """
            # Two that do not meet.
            levels read committed

            session s1
                a: update x set v = 1
                b: update x set v = 2
                end: commit
            session s2
                a: update y set v = 1
                b: update y set v = 2
                end: commit
            finally
                select * from x
            """;

    private static final String CROSSED =
            """
            levels read committed
            session s1
                first: update x set v = 1
                then: update y set v = 1
                end: commit
            session s2
                first: update y set v = 2
                then: update x set v = 2
                end: commit
            """;

    private static final String SAME =
            """
            # Both add to one number.
            levels read committed
            session s1
                add: update x set v = 1
                end: commit
            session s2
                add: update x set v = 2; select * from x
                end: commit
            finally
                select * from x
            """;

    private static GoldenOutcomes outcomes(String text) {
        return GoldenOutcomes.of(GoldenScript.parse(text), new FakeTarget());
    }

    @Test
    void everyOrderOfTheStepsIsRunOnce() {
        assertEquals(20, outcomes(APART).of("read committed").size());
    }

    @Test
    void threeSessionsGoThroughAllOrders() {
        String three = APART + "session s3\n    a: select * from z\n    b: select * from z\n";
        assertEquals(560, outcomes(three).of("read committed").size());
    }

    @Test
    void aSessionThatWaitsIsPassedOverAndMarked() {
        assertEquals(
                """
                read committed: 4 interleavings, 2 outcomes
                  A, 2 of 4
                    s1: add ok; end ok
                    s2: add ok 3; end ok
                    finally: {x=3}
                    in 1122 12~12
                  B, 2 of 4
                    s1: add ok; end ok
                    s2: add ok 2; end ok
                    finally: {x=3}
                    in 21~21 2211
                """,
                outcomes(SAME).toString());
    }

    @Test
    void aWaitThatNobodyEndsIsAnError() {
        AssertionError error = assertThrows(AssertionError.class, () -> outcomes(CROSSED));
        assertTrue(error.getMessage().contains("waits for ever after"), error.getMessage());
    }

    @Test
    void whatIsWrittenIsReadBack() {
        GoldenOutcomes outcomes = outcomes(APART);
        GoldenOutcomes read = GoldenOutcomes.parse(outcomes.toString());
        assertEquals(outcomes.toString(), read.toString());
        assertEquals(outcomes.of("read committed"), read.of("read committed"));
    }

    @Test
    void oneInterleavingCanBeRunAlone() {
        ScriptRunner runner = new ScriptRunner(GoldenScript.parse(SAME), new FakeTarget());
        ScriptRunner.Run run = runner.one("read committed", "21~21");
        assertEquals("21~21", run.interleaving());
        assertEquals(outcomes(SAME).of("read committed").get("21~21"), run.outcome());
    }

    @Test
    void anOrderThatAsksAWaitingSessionIsRefused() {
        ScriptRunner runner = new ScriptRunner(GoldenScript.parse(SAME), new FakeTarget());
        assertThrows(AssertionError.class, () -> runner.one("read committed", "2112"));
    }

    @Test
    void expectationsAreWrittenBehindTheScriptAndReplaced(@TempDir Path directory)
            throws Exception {
        Files.writeString(directory.resolve("same.script"), SAME);
        GoldenFiles files = new GoldenFiles(directory);
        assertEquals(List.of("same"), files.names());
        assertEquals("", files.read("same").expected());
        files.write("same", outcomes(APART));
        files.write("same", outcomes(SAME));
        assertEquals(outcomes(SAME).toString(), files.read("same").expected());
        assertEquals("Both add to one number.\n", files.read("same").comment());
    }

    @Test
    void aLineThatIsNoStatementIsNamed() {
        String wrong = SAME + "    select 1\n";
        String message =
                assertThrows(IllegalArgumentException.class, () -> GoldenScript.parse(wrong))
                        .getMessage();
        assertTrue(message.contains("line 11") && message.contains("select 1"), message);
        assertThrows(
                IllegalArgumentException.class,
                () -> GoldenScript.parse("session s\n    a: commit; select * from x\n"));
    }

    @Test
    void statementsAreReadAsTheyAreMeant() {
        assertEquals(
                new ScriptStatement.Select(
                        "t",
                        List.of(
                                new ScriptStatement.Condition("k", 3, "=", 0),
                                new ScriptStatement.Condition("v", 0, "<>", -5)),
                        ScriptStatement.RowLock.NO_KEY_UPDATE,
                        ScriptStatement.IfLocked.SKIP),
                ScriptStatement.parse(
                        "select * from t where k % 3 = 0 and v <> -5 for no key update skip"
                                + " locked"));
        assertEquals(
                new ScriptStatement.CreateTable(
                        "t",
                        List.of(
                                new ScriptStatement.Column("k", false),
                                new ScriptStatement.Column("s", true)),
                        List.of(0),
                        50,
                        true),
                ScriptStatement.parse(
                        "create unlogged table t (k int primary key, s text) with (fillfactor = 50)"));
        assertEquals(
                new ScriptStatement.Update(
                        "t",
                        List.of(
                                new ScriptStatement.Assignment("v", true, 5),
                                new ScriptStatement.Assignment("s", false, "xyxy")),
                        List.of()),
                ScriptStatement.parse("update t set v = v + 5, s = repeat('xy', 2)"));
    }
}
