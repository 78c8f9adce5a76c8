package org.edgefl.app.phone;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.edgefl.agent.Progress;
import org.edgefl.app.samples.SqliteSampleStore;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

@RunWith(RobolectricTestRunner.class)
public final class AgentRunnerTest {
    private final List<String> told = new CopyOnWriteArrayList<>();

    private final Progress progress = new Progress() {
        @Override
        public void enter(Phase phase, int round, String message) {
            told.add(phase + (phase == Phase.IDLE ? ": " + message : ""));
        }

        @Override
        public void step(int step, int steps, double secondsLeft) {
            told.add("step");
        }
    };

    /** Else a screen could see a phone that has nothing to do and no federation, right after it has joined one. */
    @Test
    public void endOfARunIsToldOnceAndAfterWhatCameOfIt() {
        FakeKeystore.install();
        TrainingEngine engine = new TrainingEngine(Members.app(), Runnable::run, TrainingEngine.onnxruntime());
        try (SqliteSampleStore samples = new SqliteSampleStore(Members.app(), () -> null)) {
            AgentParts parts = new AgentParts(Members.app(), samples, () -> OwnerSettings.DEFAULT, 30);
            AgentRunner runner = new AgentRunner(Members.app(), Members.home(), new KeystoreVault(), engine, parts,
                progress, () -> told.add("what came of it"));
            assertTrue(runner.start(Occasion.JOIN, null, () -> told.add("ended")));
            assertTrue(runner.awaitEnd(30));
        }
        String reason = "this device has not joined yet. Give the operator's pairing URI, with its key.";
        assertEquals(List.of("JOINING", "what came of it", "IDLE: " + reason, "ended"), told);
    }
}
