package org.edgefl.agent;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.edgefl.data.LocalData;
import org.edgefl.engine.Engine;
import org.edgefl.engine.OnnxEngine;
import org.edgefl.golden.GoldenTasks;
import org.edgefl.http.Pairing;
import org.edgefl.json.JsonReader;
import org.edgefl.telemetry.HeapMeters;
import org.edgefl.telemetry.Meters;
import org.edgefl.values.Capabilities;
import org.edgefl.values.SampleSpec;

/** A device for tests: its parts can be changed before it runs, and it remembers what it was told. */
final class TestDevice implements Progress {
    static final Pairing CODE = new Pairing("http://127.0.0.1:1", "edgefl-key-abc", "digits", List.of());

    final List<String> phases = new ArrayList<>();
    final List<Integer> steps = new ArrayList<>();
    final Set<String> messages = new LinkedHashSet<>();
    Function<SampleSpec, LocalData> data = spec -> GoldenTasks.data(0);
    Engine engine = new OnnxEngine(1);
    Meters meters = new HeapMeters();
    Condition condition = () -> null;
    long bytesADay;
    int mostTasks = 1;
    double idleSeconds = 0.2;
    TokenVault vault = TokenVault.PLAIN;
    DeviceClock clock = DeviceClock.JVM;
    Pairing pairing = CODE;
    Runnable afterStep = () -> { };
    Agent agent;

    /** What an agent is asked to do. */
    interface Life {
        void live(Agent agent) throws IOException;
    }

    void run(Path folder, FakeCoordinator coordinator) throws IOException {
        live(folder, coordinator, Agent::run);
    }

    void join(Path folder, FakeCoordinator coordinator) throws IOException {
        live(folder, coordinator, Agent::join);
    }

    private void live(Path folder, FakeCoordinator coordinator, Life life) throws IOException {
        AgentSettings settings = new AgentSettings("a phone",
            new Capabilities("a test", "1", "JUnit", "onnxruntime", "1"), engine, data, null,
            JsonReader.object("{\"schema\":\"edgefl.device_profile/1\"}"), meters,
            new OwnerLimits(List.of(() -> condition.violated()), 1e6, bytesADay, 0, 1 << 30), 0, mostTasks, idleSeconds,
            1e9, clock);
        try (AgentHome home = new AgentHome(folder, vault)) {
            agent = new Agent(home, settings, pairing, coordinator.connector(), this, line -> { });
            life.live(agent);
        }
    }

    @Override
    public void enter(Phase phase, int round, String message) {
        String entered = phase + " " + round;
        if (phases.isEmpty() || !phases.get(phases.size() - 1).equals(entered)) {
            phases.add(entered);
        }
        messages.add(message);
    }

    @Override
    public void step(int step, int all, double secondsLeft) {
        steps.add(step);
        afterStep.run();
    }
}
