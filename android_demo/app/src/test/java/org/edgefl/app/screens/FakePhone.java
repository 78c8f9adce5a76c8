package org.edgefl.app.screens;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import org.edgefl.EdgeFLError;
import org.edgefl.agent.Invitation;
import org.edgefl.agent.JoinedFederation;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.agent.TaskRecord;
import org.edgefl.app.phone.OwnerSettings;
import org.edgefl.app.phone.Phone;
import org.edgefl.app.phone.PhoneActivity;
import org.edgefl.app.samples.SampleStore;
import org.edgefl.http.Pairing;
import org.edgefl.model.DeviceModels;

/** A phone in memory: every state can be shown, and background work runs when the test says so. */
final class FakePhone implements Phone {
    final FakeSamples samples = new FakeSamples();
    final Queue<Runnable> work = new ArrayDeque<>();
    final List<Runnable> listeners = new ArrayList<>();
    final List<String> asked = new ArrayList<>();
    List<TaskRecord> history = List.of();
    DeviceModels models = DeviceModels.NONE;
    JoinedFederation federation;
    PhoneActivity activity = PhoneActivity.IDLE;
    OwnerSettings settings = OwnerSettings.DEFAULT;
    Invitation offered;
    Invitation joining;
    String engineProblem;
    int trainings;
    int stops;
    /** Whether models are too large for it. */
    boolean outOfMemory;
    /** Whether background work has to wait. */
    boolean holdBack;

    /** Something has changed. */
    void tell() {
        new ArrayList<>(listeners).forEach(Runnable::run);
    }

    void be(Phase phase, int round, int step, int steps, double secondsLeft, String message) {
        activity = new PhoneActivity(phase, round, step, steps, secondsLeft, message);
        tell();
    }

    @Override
    public String engineProblem() {
        return engineProblem;
    }

    @Override
    public void background(Runnable task) {
        work.add(task);
    }

    @Override
    public void network(Runnable task) {
        work.add(task);
    }

    @Override
    public Invitation invitation(String uri) {
        asked.add(uri);
        Pairing pairing = Pairing.parse(uri, false);
        if (offered == null) {
            throw new EdgeFLError("the coordinator does not answer", "Check the network, and try again.");
        }
        return new Invitation(pairing, offered.sample(), offered.trust(), offered.pin());
    }

    @Override
    public void join(Invitation invitation) {
        joining = invitation;
    }

    /** The service has started: joining takes its time. */
    void measures() {
        be(Phase.JOINING, 0, 0, 0, Double.NaN, "");
    }

    /** Joining has worked. */
    void joined() {
        be(Phase.IDLE, 0, 0, 0, Double.NaN, "");
        Pairing pairing = joining.pairing();
        federation = new JoinedFederation(pairing.url(), pairing.federation(), "device-76d8abca", joining.sample(),
            pairing.pins());
        tell();
    }

    @Override
    public JoinedFederation federation() {
        return federation;
    }

    @Override
    public void leave() {
        federation = null;
    }

    @Override
    public SampleStore samples() {
        return samples;
    }

    @Override
    public PhoneActivity activity() {
        return activity;
    }

    @Override
    public void addListener(Runnable listener) {
        listeners.add(listener);
    }

    @Override
    public void removeListener(Runnable listener) {
        listeners.remove(listener);
    }

    @Override
    public void trainNow() {
        trainings++;
        be(Phase.ASKING, 0, 0, 0, Double.NaN, "");
    }

    @Override
    public void stopTraining() {
        stops++;
        be(Phase.IDLE, 0, 0, 0, Double.NaN, "Stopped. What was done is kept.");
    }

    @Override
    public OwnerSettings settings() {
        return settings;
    }

    @Override
    public void put(OwnerSettings wanted) {
        settings = wanted;
        tell();
    }

    @Override
    public List<TaskRecord> history() {
        return history;
    }

    @Override
    public DeviceModels models() {
        if (outOfMemory) {
            throw new OutOfMemoryError("Failed to allocate a 400000000 byte allocation");
        }
        return models;
    }
}
