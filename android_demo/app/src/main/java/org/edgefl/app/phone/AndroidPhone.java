package org.edgefl.app.phone;

import android.content.Context;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.IntFunction;
import org.edgefl.EdgeFLError;
import org.edgefl.agent.AgentHome;
import org.edgefl.agent.Invitation;
import org.edgefl.agent.JoinedFederation;
import org.edgefl.agent.TaskHistory;
import org.edgefl.agent.TaskRecord;
import org.edgefl.app.R;
import org.edgefl.app.samples.SampleStore;
import org.edgefl.app.samples.SqliteSampleStore;
import org.edgefl.engine.Engine;
import org.edgefl.http.Pairing;
import org.edgefl.model.DeviceModels;

/**
 * The phone on Android. Everything that must outlive the process is in files: the agent's home folder, the samples, the
 * owner's settings.
 */
public final class AndroidPhone implements Phone {
    private static final double LAST_MOMENT_SECONDS = 3;
    private static final double STOP_SECONDS = 30;
    private static final double CHECKPOINT_SECONDS = 30;

    private final Context context;
    private final Path home;
    private final KeystoreVault vault = new KeystoreVault();
    private final ExecutorService background = oneThread("edgefl-background");
    private final ExecutorService network = oneThread("edgefl-network");
    private final SettingsStore settings;
    private final SqliteSampleStore samples;
    private final TrainingEngine engine;
    private final AgentParts parts;
    private final ActivityBoard board = new ActivityBoard();
    private final AgentRunner runner;
    private volatile JoinedFederation federation;
    /** In memory only: it has the join key. */
    private Pairing joining;

    /** The phone of a process. */
    public AndroidPhone(Context context) {
        this(context, TrainingEngine.onnxruntime(), CHECKPOINT_SECONDS);
    }

    AndroidPhone(Context context, IntFunction<Engine> engines, double checkpointSeconds) {
        this.context = context;
        this.home = context.getFilesDir().toPath().resolve("federation");
        this.settings = new SettingsStore(context);
        this.samples = new SqliteSampleStore(context, () -> federation == null ? null : federation.sample());
        this.engine = new TrainingEngine(context, background, engines);
        this.parts = new AgentParts(context, samples, settings::get, checkpointSeconds);
        this.runner = new AgentRunner(context, home, vault, engine, parts, board, this::lookAgain);
        this.federation = JoinedFederation.read(home);
    }

    @Override
    public String engineProblem() {
        return engine.problem();
    }

    @Override
    public void background(Runnable work) {
        background.execute(work);
    }

    @Override
    public void network(Runnable work) {
        network.execute(work);
    }

    private static ExecutorService oneThread(String name) {
        return Executors.newSingleThreadExecutor(work -> {
            Thread thread = new Thread(work, name);
            thread.setDaemon(true);
            return thread;
        });
    }

    @Override
    public Invitation invitation(String uri) {
        return Invitation.ask(Pairing.parse(uri.trim(), false), parts.connector());
    }

    @Override
    public void join(Invitation invitation) {
        JoinedFederation member = federation;
        if (member != null && !isSame(member, invitation.pairing())) {
            failed(R.string.message_leave_first);
            return;
        }
        synchronized (this) {
            joining = invitation.pairing();
        }
        try {
            TrainingService.start(context, TrainingService.JOIN);
        } catch (IllegalStateException | SecurityException notAllowed) {
            // It takes half a minute, and the owner is looking: the process lives that long without a service.
            begin(Occasion.JOIN, () -> { });
        }
    }

    private static boolean isSame(JoinedFederation member, Pairing pairing) {
        boolean named = pairing.federation() == null || pairing.federation().equals(member.federation());
        return member.url().equals(pairing.url()) && named;
    }

    @Override
    public JoinedFederation federation() {
        return federation;
    }

    @Override
    public void leave() throws IOException {
        runner.stop(Occasion.values());
        if (!runner.awaitEnd(STOP_SECONDS)) {
            throw new EdgeFLError("the phone is still working", "Try again in a minute.");
        }
        try (AgentHome folder = new AgentHome(home, vault)) {
            folder.leave();
        }
        vault.forget();
        federation = null;
        planNights();
        board.put(PhoneActivity.IDLE);
    }

    @Override
    public SampleStore samples() {
        return samples;
    }

    @Override
    public PhoneActivity activity() {
        return board.get();
    }

    @Override
    public void addListener(Runnable listener) {
        board.addListener(listener);
    }

    @Override
    public void removeListener(Runnable listener) {
        board.removeListener(listener);
    }

    @Override
    public void trainNow() {
        if (federation == null) {
            failed(R.string.message_join_first);
            return;
        }
        try {
            TrainingService.start(context, TrainingService.TRAIN);
        } catch (IllegalStateException | SecurityException notAllowed) {
            failed(R.string.message_foreground_not_allowed);
        }
    }

    @Override
    public void stopTraining() {
        runner.stop(Occasion.values());
    }

    @Override
    public OwnerSettings settings() {
        return settings.get();
    }

    @Override
    public void put(OwnerSettings changed) {
        settings.put(changed);
        planNights();
        if (!changed.atNight()) {
            runner.stop(Occasion.NIGHT);
        }
        board.tell();
    }

    @Override
    public List<TaskRecord> history() {
        return TaskHistory.read(home);
    }

    @Override
    public DeviceModels models() {
        JoinedFederation member = federation;
        if (member == null || engineProblem() != null) {
            return DeviceModels.NONE;
        }
        try {
            return DeviceModels.open(home, engine.open(), member.sample());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Plan the nights by the owner's settings, or cancel them. */
    public void planNights() {
        NightPlan.apply(context, wantsNights());
    }

    /** Whether the phone trains at night by itself. */
    boolean wantsNights() {
        return settings.get().atNight() && federation != null;
    }

    boolean isRunning() {
        return runner.isRunning(Occasion.values());
    }

    /** Whether something runs that needs the service: the night's work does not. */
    boolean isRunningInForeground() {
        return runner.isRunning(Occasion.JOIN, Occasion.NOW);
    }

    /** Begin to work, unless the phone does or cannot; {@code ended} is called on another thread. */
    boolean begin(Occasion occasion, Runnable ended) {
        Pairing pairing = null;
        if (occasion == Occasion.JOIN) {
            synchronized (this) {
                pairing = joining;
                joining = null;
            }
        }
        String problem = engineProblem();
        if (problem != null) {
            board.fail(problem);
            return false;
        }
        if (federation == null && pairing == null) {
            failed(R.string.message_join_first);
            return false;
        }
        return runner.start(occasion, pairing, ended);
    }

    /** An agent may have joined, and has written into the history. */
    private void lookAgain() {
        federation = JoinedFederation.read(home);
        planNights();
        board.tell();
    }

    /** Say why nothing was begun. */
    void failed(int text) {
        board.fail(context.getString(text));
    }

    /** What needs the service ends with it. */
    void endForeground() {
        runner.stop(Occasion.JOIN, Occasion.NOW);
    }

    /** The window at night is over: what is done must be on the disk when this returns. */
    void endNight() {
        runner.stop(Occasion.NIGHT);
        runner.awaitEnd(LAST_MOMENT_SECONDS);
    }

    /** The system ends the service within seconds: keep a checkpoint, and leave the rest to the night. */
    void timeIsUp() {
        endForeground();
        runner.awaitEnd(LAST_MOMENT_SECONDS);
        planNights();
        failed(wantsNights() ? R.string.message_time_is_up_goes_on_at_night : R.string.message_time_is_up);
    }

    /** Wait until no agent runs; return whether that came within some seconds. */
    boolean awaitEnd(double seconds) {
        return runner.awaitEnd(seconds);
    }

    /** End as the process does, but in order: for those who need a second phone in one process. */
    void close() {
        runner.stop(Occasion.values());
        runner.awaitEnd(STOP_SECONDS);
        background.shutdown();
        network.shutdownNow();
        samples.close();
    }
}
