package org.edgefl.agent;

import java.io.IOException;
import java.util.List;
import org.edgefl.EdgeFLError;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.http.Meter;
import org.edgefl.http.Pairing;
import org.edgefl.http.Transport;
import org.edgefl.http.Unreachable;
import org.edgefl.json.InvalidJson;
import org.edgefl.training.Interrupts;
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
    /** Seconds to wait after a condition of the owner did not hold. */
    static final double AFTER_OWNER = 60;

    private static final int FREE_REFUSALS = 3;

    private final Parts parts;
    private final Polling polling;
    private final Work work;
    private final Outbox outbox;
    private final Status status;
    private int done;
    private int refusals;

    /** An agent in a home folder; {@code pairing} is null if it has joined before. */
    public Agent(AgentHome home, AgentSettings settings, Pairing pairing, Connector connector, Progress progress,
            Log log) {
        this.parts = new Parts(home, settings, pairing, connector, progress, log);
        this.polling = new Polling(parts);
        this.work = new Work(parts);
        this.outbox = parts.outbox;
        this.status = parts.status;
    }

    /** Ask the agent to end soon, in the middle of a step too. Nothing that is finished is lost. */
    public void stop() {
        parts.stop.stop();
        // On another thread: the one that stops may be a phone's main thread, which must not touch the network.
        Thread abort = new Thread(parts.connection::abort, "edgefl-abort");
        abort.setDaemon(true);
        abort.start();
    }

    /**
     * Join the federation, or come back to it, and do nothing else: no samples are needed.
     *
     * @return the federation, or null if the agent was stopped before it had joined
     */
    public JoinedFederation join() throws IOException {
        parts.idle.restart();
        status.enter(Phase.JOINING, 0);
        boolean joined = ended(() -> parts.enrolment.join(sample -> { }));
        return joined ? JoinedFederation.read(parts.home.folder()) : null;
    }

    /**
     * Take part until the federation has ended, the tasks are done, there is nothing to do, or a stop. A device that has
     * not joined does so first, if its samples fit the federation.
     */
    public void run() throws IOException {
        parts.idle.restart();
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
                parts.traffic.save();
            } finally {
                status.enter(Phase.IDLE, 0);
            }
        }
    }

    private void takePart() throws IOException {
        parts.enrolment.join(parts.samples::check);
        try {
            while (parts.settings.mostTasks() == 0 || done < parts.settings.mostTasks()) {
                if (parts.stop.isStopped()) {
                    throw new Interrupts.Stopped();
                }
                if (!turn()) {
                    return;
                }
                if (parts.idle.isOver()) {
                    status.endForNow("nothing to do for now");
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
            return polling.ask();
        }
        if (outbox.hasRefusal()) {
            refuse(pending);
        } else if (outbox.hasResult()) {
            deliver(pending);
        } else {
            Refusal reason = work.goOn(pending);
            if (reason != null) {
                parts.waitFor(reason.message(), pending.plan().round() + 1, AFTER_OWNER);
            }
        }
        return true;
    }

    private PendingTask pending() throws IOException {
        try {
            PendingTask found = PendingTask.load(parts.home);
            if (found == null) {
                parts.home.clearTask();
            }
            return found;
        } catch (InvalidJson damaged) {
            parts.home.clearTask();
            return null;
        }
    }

    private void deliver(PendingTask pending) throws IOException {
        Refusal metered = parts.settings.limits().metered();
        if (metered != null) {
            parts.waitFor(metered.message(), pending.plan().round() + 1, AFTER_OWNER);
            return;
        }
        try {
            Receipt receipt = outbox.deliver(pending);
            parts.idle.restart();
            if (receipt == null) {
                return;
            }
            done++;
            refusals = 0;
            if (parts.settings.waitSeconds() == 0) {
                parts.stop.sleep(parts.idle.atMost(receipt.retrySeconds()));
            }
        } catch (TaskRefused beyondTheDay) {
            parts.waitFor(beyondTheDay.getMessage(), pending.plan().round() + 1, AFTER_OWNER);
        }
    }

    private void refuse(PendingTask pending) throws IOException {
        Refusal refusal;
        try {
            refusal = outbox.tellRefusal(pending);
            parts.idle.restart();
        } catch (TaskRefused beyondTheDay) {
            parts.waitFor(beyondTheDay.getMessage(), pending.plan().round() + 1, AFTER_OWNER);
            return;
        }
        if (refusal.isOwners()) {
            parts.waitFor(refusal.message(), 0, AFTER_OWNER);
        } else if (++refusals >= FREE_REFUSALS) {
            parts.patience.pause();
        }
    }

    /** Makes transports: an app decides how to reach a coordinator. */
    public interface Connector {
        /** Return a transport to a URL that trusts some pins. */
        Transport connect(String url, List<String> pins, Meter meter);
    }
}
