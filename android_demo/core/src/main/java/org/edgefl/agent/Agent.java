package org.edgefl.agent;

import java.io.IOException;
import java.nio.file.Files;
import java.time.LocalDate;
import java.util.List;
import org.edgefl.EdgeFLError;
import org.edgefl.data.LocalData;
import org.edgefl.http.CoordinatorClient;
import org.edgefl.http.Meter;
import org.edgefl.http.Pairing;
import org.edgefl.http.ProblemAnswer;
import org.edgefl.http.Transport;
import org.edgefl.http.Unreachable;
import org.edgefl.json.InvalidJson;
import org.edgefl.training.Interrupts;
import org.edgefl.training.Trained;
import org.edgefl.values.Assignment;
import org.edgefl.values.ClientPlan;
import org.edgefl.values.Receipt;
import org.edgefl.values.Refusal;
import org.edgefl.values.Refusal.Reason;
import org.edgefl.values.TaskRefused;

/**
 * A device that takes part: polls, downloads, trains, sends. It may be cut off anywhere and goes on where it was.
 *
 * <p>Everything runs in the thread that calls {@link #run}; {@link #stop} may come from any other.
 */
public final class Agent {
    private static final double LEAST_PAUSE = 1;
    private static final double AFTER_OWNER = 60;
    private static final double DAY_SECONDS = 86_400;

    private final AgentHome home;
    private final AgentSettings settings;
    private final Log log;
    private final Enrolment enrolment;
    private final TrafficMeter traffic;
    private final ArtifactCache cache;
    private final Connection connection;
    private final Patience patience;
    private final StopSignal stop = new StopSignal();
    private int done;
    private int refusals;
    private long pinsAt = System.nanoTime();

    /** An agent in a home folder; {@code pairing} is null if it has joined before. */
    public Agent(AgentHome home, AgentSettings settings, Pairing pairing, Connector connector, Log log) {
        this.home = home;
        this.settings = settings;
        this.log = log;
        this.traffic = new TrafficMeter(home, settings.limits().bytesADay(), LocalDate::now);
        this.cache = new ArtifactCache(home, settings.limits().cacheBytes());
        this.connection = new Connection(connector, traffic);
        this.patience = new Patience(connection, stop, log);
        this.enrolment = new Enrolment(home, settings, pairing, connection, cache, patience, log);
    }

    /** Ask the agent to end soon. Nothing that is finished is lost. */
    public void stop() {
        stop.stop();
        connection.abort();
    }

    /** Take part until the federation has ended, the tasks are done, or a stop. */
    public void run() throws IOException {
        try {
            LocalData data = enrolment.join();
            TaskRunner runner = new TaskRunner(home, settings.engine(), data, settings.meters(), traffic, cache,
                settings.limits(), settings.checkpointSeconds());
            while (!stop.isStopped() && (settings.mostTasks() == 0 || done < settings.mostTasks())) {
                if (!turn(runner)) {
                    return;
                }
            }
        } catch (Interrupts.Stopped stopped) {
            log.say("stopped");
        } finally {
            traffic.save();
        }
    }

    /** Do the next thing: send what is left, go on with a task, or poll. Return whether there may be more. */
    private boolean turn(TaskRunner runner) throws IOException {
        PendingTask pending = pending();
        if (pending == null) {
            return poll();
        }
        if (Files.exists(home.taskFile("result.safetensors"))) {
            deliver(pending);
        } else if (Files.exists(home.taskFile("refusal.json"))) {
            tellRefusal(pending);
        } else {
            work(runner, pending);
        }
        return true;
    }

    private PendingTask pending() throws IOException {
        try {
            PendingTask found = PendingTask.load(home);
            if (found == null) {
                home.clearTask();
            }
            return found;
        } catch (InvalidJson damaged) {
            home.clearTask();
            return null;
        }
    }

    private boolean poll() throws IOException {
        Refusal violated = violated();
        if (violated != null) {
            log.say("waiting: " + violated.message());
            stop.sleep(AFTER_OWNER);
            return true;
        }
        refreshPins();
        Assignment answer;
        try {
            answer = patience.until(client -> checked(client.poll(enrolment.token(), settings.waitSeconds())));
        } catch (ProblemAnswer problem) {
            if (problem.isDenied()) {
                throw problem;
            }
            log.say("the coordinator does not answer polls: " + problem.getMessage());
            patience.pause();
            return true;
        }
        if (answer.plan() == null) {
            if (answer.finished()) {
                log.say("the federation has ended");
                return false;
            }
            double pause = settings.waitSeconds() > 0 ? LEAST_PAUSE : Math.max(answer.retrySeconds(), LEAST_PAUSE);
            stop.sleep(pause);
            return true;
        }
        accept(answer);
        return true;
    }

    private static Assignment checked(Assignment answer) {
        try {
            if (answer.plan() != null) {
                ClientPlan.of(answer.plan());
            }
            return answer;
        } catch (EdgeFLError invalid) {
            throw new Unreachable("the coordinator sent a plan that is not valid: " + invalid.getMessage(), 0, invalid);
        }
    }

    private void accept(Assignment answer) throws IOException {
        ClientPlan plan = ClientPlan.of(answer.plan());
        new PendingTask(plan, answer.plan(), answer.acceptedCodings(), System.currentTimeMillis()).save(home);
        traffic.beginTask();
        log.say("round " + (plan.round() + 1) + ": " + plan.rule() + (plan.isPersonal() ? ", for this device alone" : ""));
    }

    private Refusal violated() {
        Refusal owner = settings.limits().violated();
        return owner == null ? traffic.violated() : owner;
    }

    private void work(TaskRunner runner, PendingTask pending) throws IOException {
        ClientPlan plan = pending.plan();
        Deadline deadline = new Deadline(stop, settings.limits(), plan.deadlineSeconds(), pending.age());
        try {
            for (String digest : plan.artifacts()) {
                patience.until(client -> {
                    deadline.check(0);
                    return fetch(client, digest, deadline.secondsLeft());
                });
            }
            cache.trim(plan.artifacts());
            deadline.begin();
            Trained trained = runner.run(plan, deadline);
            refusals = 0;
            log.say(String.format("  %d steps, loss %.4f%s", trained.steps(), trained.loss(),
                trained.accuracy() == null ? "" : String.format(", accuracy %.3f", trained.accuracy())));
        } catch (TaskRefused refused) {
            home.put("task/refusal.json", refused.refusal().toJson());
        } catch (ProblemAnswer problem) {
            if (problem.isDenied()) {
                throw problem;
            }
            home.put("task/refusal.json", new Refusal(Reason.BROKEN, problem.getMessage()).toJson());
        }
    }

    private Boolean fetch(CoordinatorClient client, String digest, double seconds) {
        try {
            cache.fetch(client, enrolment.token(), ArtifactCache.ARTIFACTS, digest, seconds);
            return true;
        } catch (IOException error) {
            throw new TaskRefused(Reason.STORAGE, "the disk failed: " + error.getMessage());
        }
    }

    private void deliver(PendingTask pending) throws IOException {
        String taskId = pending.plan().taskId();
        try {
            Receipt receipt = patience.until(client -> send(client, pending));
            log.say("  " + receipt.outcome());
            done++;
            home.clearTask();
            pause(receipt);
        } catch (ProblemAnswer problem) {
            if (problem.isDenied()) {
                throw problem;
            }
            log.say("  not accepted: " + problem.getMessage());
            Files.deleteIfExists(home.taskFile("result.safetensors"));
            if (problem.status() == 413 || problem.status() == 422) {
                home.put("task/refusal.json", new Refusal(Reason.BROKEN, problem.getMessage()).toJson());
            } else {
                home.clearTask();
            }
        } catch (TaskRefused beyondTheDay) {
            log.say("  " + taskId + " waits: " + beyondTheDay.getMessage());
            stop.sleep(AFTER_OWNER);
        }
    }

    private Receipt send(CoordinatorClient client, PendingTask pending) {
        try {
            return new Delivery(client, enrolment.token())
                .send(pending.plan().taskId(), home.taskFile("result.safetensors"), pending.codings());
        } catch (IOException error) {
            throw new Unreachable("the result cannot be read: " + error.getMessage(), 0, error);
        }
    }

    private void tellRefusal(PendingTask pending) throws IOException {
        Refusal refusal = Refusal.of(home.document("task/refusal.json"));
        log.say("  refused: " + refusal.message());
        try {
            patience.until(client -> client.refuse(enrolment.token(), pending.plan().taskId(), refusal));
        } catch (ProblemAnswer problem) {
            if (problem.isDenied()) {
                throw problem;
            }
        }
        home.clearTask();
        if (refusal.isOwners()) {
            stop.sleep(AFTER_OWNER);
        } else if (++refusals >= 3) {
            patience.pause();
        }
    }

    private void pause(Receipt receipt) {
        if (settings.waitSeconds() == 0) {
            stop.sleep(receipt.retrySeconds());
        }
    }

    private void refreshPins() throws IOException {
        if ((System.nanoTime() - pinsAt) / 1e9 > DAY_SECONDS) {
            pinsAt = System.nanoTime();
            enrolment.refreshPins();
        }
    }

    /** Makes transports: an app decides how to reach a coordinator. */
    public interface Connector {
        /** Return a transport to a URL that trusts some pins. */
        Transport connect(String url, List<String> pins, Meter meter);
    }
}
