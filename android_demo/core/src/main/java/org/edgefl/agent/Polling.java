package org.edgefl.agent;

import java.io.IOException;
import org.edgefl.EdgeFLError;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.http.ProblemAnswer;
import org.edgefl.http.Unreachable;
import org.edgefl.values.Assignment;
import org.edgefl.values.ClientPlan;
import org.edgefl.values.Refusal;

/** Asks for a task, if there is nothing in the way of one: the owner's limits, the day's traffic, missing samples. */
final class Polling {
    private static final double LEAST_PAUSE = 1;
    private static final double LOOK_FOR_SAMPLES = 5;
    private static final double DAY_SECONDS = 86_400;

    private final Parts parts;
    private final AgentSettings settings;
    private final Status status;
    private long pinsAt = System.nanoTime();

    Polling(Parts parts) {
        this.parts = parts;
        this.settings = parts.settings;
        this.status = parts.status;
    }

    /** Ask once, and put a task on the disk if there is one. Return whether there may be more to do. */
    boolean ask() throws IOException {
        Refusal owners = settings.limits().violated();
        Refusal violated = owners == null ? parts.traffic.violated() : owners;
        if (violated != null) {
            parts.waitFor(violated.message(), 0, Agent.AFTER_OWNER);
            return true;
        }
        if (!parts.samples.areThere()) {
            parts.waitFor("there are no samples to train with", 0, LOOK_FOR_SAMPLES);
            return true;
        }
        status.enter(Phase.ASKING, 0);
        refreshPins();
        try {
            parts.told.tell(parts.enrolment.token(), parts.samples.count());
            return take(parts.patience.until(
                client -> checked(client.poll(parts.enrolment.token(), waitSeconds()))));
        } catch (ProblemAnswer problem) {
            if (problem.isDenied()) {
                throw problem;
            }
            status.note("the coordinator does not answer polls: " + problem.getMessage());
            parts.patience.pause();
            return true;
        }
    }

    private double waitSeconds() {
        return Math.floor(parts.idle.atMost(settings.waitSeconds()));
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

    private boolean take(Assignment answer) throws IOException {
        if (answer.plan() != null) {
            accept(PendingTask.arrived(answer, settings.clock()));
            return true;
        }
        if (answer.finished()) {
            status.say("the federation has ended");
            return false;
        }
        double pause = settings.waitSeconds() > 0 ? LEAST_PAUSE : Math.max(answer.retrySeconds(), LEAST_PAUSE);
        parts.stop.sleep(parts.idle.atMost(pause));
        return true;
    }

    private void accept(PendingTask arrived) throws IOException {
        ClientPlan plan = arrived.plan();
        try {
            arrived.save(parts.home);
        } catch (IOException full) {
            // A full disk must not keep the coordinator waiting for a result.
            parts.outbox.tell(plan, new Refusal(Refusal.Reason.STORAGE, "the disk failed: " + full.getMessage()));
            parts.patience.pause();
            return;
        }
        parts.traffic.beginTask();
        parts.idle.restart();
        status.say(
            "round " + (plan.round() + 1) + ": " + plan.rule() + (plan.isPersonal() ? ", for this device alone" : ""));
    }

    private void refreshPins() throws IOException {
        if ((System.nanoTime() - pinsAt) / 1e9 > DAY_SECONDS) {
            pinsAt = System.nanoTime();
            parts.enrolment.refreshPins();
        }
    }
}
