package org.edgefl.agent;

import java.io.IOException;
import java.time.LocalDate;
import java.util.List;
import org.edgefl.EdgeFLError;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.http.Meter;
import org.edgefl.http.Pairing;
import org.edgefl.http.ProblemAnswer;
import org.edgefl.http.Transport;
import org.edgefl.http.Unreachable;
import org.edgefl.json.InvalidJson;
import org.edgefl.training.Interrupts;
import org.edgefl.values.Assignment;
import org.edgefl.values.ClientPlan;
import org.edgefl.values.Receipt;
import org.edgefl.values.Refusal;
import org.edgefl.values.TaskRefused;

/**
 * A device that takes part: polls, downloads, trains, sends. It may be cut off anywhere and goes on where it was.
 *
 * <p>Everything runs in the thread that calls {@link #join} or {@link #run}; {@link #stop} may come from any other, and
 * is final: whoever wants to go on makes another agent.
 */
public final class Agent {
    private static final double LEAST_PAUSE = 1;
    private static final double AFTER_OWNER = 60;
    private static final double LOOK_FOR_SAMPLES = 5;
    private static final double DAY_SECONDS = 86_400;
    private static final int FREE_REFUSALS = 3;

    private final AgentHome home;
    private final AgentSettings settings;
    private final Enrolment enrolment;
    private final OwnSamples samples;
    private final TrafficMeter traffic;
    private final Connection connection;
    private final Patience patience;
    private final Outbox outbox;
    private final Work work;
    private final Status status;
    private final IdleTime idle;
    private final StopSignal stop = new StopSignal();
    private int done;
    private int refusals;
    private long pinsAt = System.nanoTime();

    /** An agent in a home folder; {@code pairing} is null if it has joined before. */
    public Agent(AgentHome home, AgentSettings settings, Pairing pairing, Connector connector, Progress progress,
            Log log) {
        this.home = home;
        this.settings = settings;
        this.status = new Status(progress, log);
        this.idle = new IdleTime(settings.idleSeconds());
        this.samples = new OwnSamples(settings.data());
        this.traffic = new TrafficMeter(home, settings.limits().bytesADay(), LocalDate::now);
        this.connection = new Connection(connector, traffic);
        this.patience = new Patience(connection, stop, idle, status);
        ArtifactCache cache = new ArtifactCache(home, settings.limits().cacheBytes());
        this.enrolment = new Enrolment(home, settings, pairing, connection, cache, patience, idle, stop, status);
        this.outbox = new Outbox(home, enrolment, patience, status);
        this.work = new Work(home, settings, enrolment, samples, traffic, cache, patience, outbox, stop, idle, status);
    }

    /** Ask the agent to end soon, in the middle of a step too. Nothing that is finished is lost. */
    public void stop() {
        stop.stop();
        // On another thread: the one that stops may be a phone's main thread, which must not touch the network.
        Thread abort = new Thread(connection::abort, "edgefl-abort");
        abort.setDaemon(true);
        abort.start();
    }

    /**
     * Join the federation, or come back to it, and do nothing else: no samples are needed.
     *
     * @return the federation, or null if the agent was stopped before it had joined
     */
    public JoinedFederation join() throws IOException {
        idle.restart();
        status.enter(Phase.JOINING, 0);
        return ended(() -> enrolment.join(sample -> { })) ? JoinedFederation.read(home.folder()) : null;
    }

    /**
     * Take part until the federation has ended, the tasks are done, there is nothing to do, or a stop. A device that
     * has not joined does so first, if its samples fit the federation.
     */
    public void run() throws IOException {
        idle.restart();
        status.enter(Phase.JOINING, 0);
        ended(this::takePart);
    }

    /** What an agent does until it ends. */
    private interface Life {
        void live() throws IOException;
    }

    /** Live, and end properly however that ends; return false after a stop. */
    private boolean ended(Life life) throws IOException {
        try {
            life.live();
            return true;
        } catch (Interrupts.Stopped stopped) {
            status.say("stopped");
            return false;
        } catch (EdgeFLError error) {
            status.last(error.getMessage());
            throw error;
        } finally {
            try {
                traffic.save();
            } finally {
                status.enter(Phase.IDLE, 0);
            }
        }
    }

    private void takePart() throws IOException {
        enrolment.join(samples::check);
        try {
            while (settings.mostTasks() == 0 || done < settings.mostTasks()) {
                if (stop.isStopped()) {
                    throw new Interrupts.Stopped();
                }
                if (!turn()) {
                    return;
                }
                if (idle.isOver()) {
                    status.say("nothing to do for now");
                    return;
                }
            }
        } catch (Unreachable error) {
            // Only if it was idle too long. Whatever is on the disk is sent the next time.
            status.say(error.getMessage());
        }
    }

    /** Do the next thing: send what is left, go on with a task, or poll. Return whether there may be more. */
    private boolean turn() throws IOException {
        PendingTask pending = pending();
        if (pending == null) {
            return poll();
        }
        if (outbox.hasRefusal()) {
            refuse(pending);
        } else if (outbox.hasResult()) {
            deliver(pending);
        } else {
            Refusal reason = work.goOn(pending);
            if (reason != null) {
                waitFor(reason.message(), pending.plan().round() + 1, AFTER_OWNER);
            }
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

    private void waitFor(String reason, int round, double seconds) {
        status.waitFor(reason, round);
        stop.sleep(idle.atMost(seconds));
    }

    private boolean poll() throws IOException {
        Refusal owners = settings.limits().violated();
        Refusal violated = owners == null ? traffic.violated() : owners;
        if (violated != null) {
            waitFor(violated.message(), 0, AFTER_OWNER);
            return true;
        }
        if (!samples.areThere()) {
            waitFor("there are no samples to train with", 0, LOOK_FOR_SAMPLES);
            return true;
        }
        status.enter(Phase.ASKING, 0);
        refreshPins();
        Assignment answer;
        try {
            answer = patience.until(client -> checked(client.poll(enrolment.token(), waitSeconds())));
        } catch (ProblemAnswer problem) {
            if (problem.isDenied()) {
                throw problem;
            }
            status.note("the coordinator does not answer polls: " + problem.getMessage());
            patience.pause();
            return true;
        }
        if (answer.plan() != null) {
            accept(answer);
            return true;
        }
        if (answer.finished()) {
            status.say("the federation has ended");
            return false;
        }
        double pause = settings.waitSeconds() > 0 ? LEAST_PAUSE : Math.max(answer.retrySeconds(), LEAST_PAUSE);
        stop.sleep(idle.atMost(pause));
        return true;
    }

    private double waitSeconds() {
        return Math.floor(idle.atMost(settings.waitSeconds()));
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
        PendingTask arrived = PendingTask.arrived(answer, settings.clock());
        arrived.save(home);
        ClientPlan plan = arrived.plan();
        traffic.beginTask();
        idle.restart();
        status.say(
            "round " + (plan.round() + 1) + ": " + plan.rule() + (plan.isPersonal() ? ", for this device alone" : ""));
    }

    private void deliver(PendingTask pending) throws IOException {
        try {
            Receipt receipt = outbox.deliver(pending);
            idle.restart();
            if (receipt == null) {
                return;
            }
            done++;
            refusals = 0;
            if (settings.waitSeconds() == 0) {
                stop.sleep(idle.atMost(receipt.retrySeconds()));
            }
        } catch (TaskRefused beyondTheDay) {
            waitFor(beyondTheDay.getMessage(), pending.plan().round() + 1, AFTER_OWNER);
        }
    }

    private void refuse(PendingTask pending) throws IOException {
        Refusal refusal;
        try {
            refusal = outbox.tellRefusal(pending);
            idle.restart();
        } catch (TaskRefused beyondTheDay) {
            waitFor(beyondTheDay.getMessage(), pending.plan().round() + 1, AFTER_OWNER);
            return;
        }
        if (refusal.isOwners()) {
            waitFor(refusal.message(), 0, AFTER_OWNER);
        } else if (++refusals >= FREE_REFUSALS) {
            patience.pause();
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
