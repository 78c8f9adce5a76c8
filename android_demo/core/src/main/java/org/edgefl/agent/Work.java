package org.edgefl.agent;

import java.io.IOException;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.http.CoordinatorClient;
import org.edgefl.http.ProblemAnswer;
import org.edgefl.training.Interrupts;
import org.edgefl.training.Trained;
import org.edgefl.values.ClientPlan;
import org.edgefl.values.Refusal;
import org.edgefl.values.Refusal.Reason;
import org.edgefl.values.TaskRefused;

/** Works on the task that a device has: downloads, training, a result or a refusal on the disk. */
final class Work {
    private final AgentSettings settings;
    private final Enrolment enrolment;
    private final OwnSamples samples;
    private final TrafficMeter traffic;
    private final ArtifactCache cache;
    private final TaskRunner runner;
    private final Patience patience;
    private final Outbox outbox;
    private final StopSignal stop;
    private final IdleTime idle;
    private final Status status;

    Work(AgentHome home, AgentSettings settings, Enrolment enrolment, OwnSamples samples, TrafficMeter traffic,
            ArtifactCache cache, Patience patience, Outbox outbox, StopSignal stop, IdleTime idle, Status status) {
        this.settings = settings;
        this.enrolment = enrolment;
        this.samples = samples;
        this.traffic = traffic;
        this.cache = cache;
        this.runner = new TaskRunner(home, settings, traffic, cache);
        this.patience = patience;
        this.outbox = outbox;
        this.stop = stop;
        this.idle = idle;
        this.status = status;
    }

    /**
     * Bring the task to a result or a refusal on the disk.
     *
     * @return why it waits instead, or null: a condition of the owner does not hold, and there is time to wait
     */
    Refusal goOn(PendingTask pending) throws IOException {
        ClientPlan plan = pending.plan();
        Deadline deadline = new Deadline(stop, settings.limits(), plan.deadlineSeconds(),
            pending.age(settings.clock()), settings.clock());
        try {
            deadline.begin();
            status.enter(Phase.DOWNLOADING, plan.round() + 1);
            download(plan, deadline);
            deadline.begin();
            status.enter(Phase.TRAINING, plan.round() + 1);
            Trained trained = runner.run(plan, samples, deadline, status::step);
            status.say(String.format("  %d steps, loss %.4f%s", trained.steps(), trained.loss(),
                trained.accuracy() == null ? "" : String.format(", accuracy %.3f", trained.accuracy())));
        } catch (Interrupts.Stopped stopped) {
            Refusal objection = deadline.objection();
            if (stop.isStopped() || objection == null) {
                throw stopped;
            }
            if (deadline.canWaitFor(objection, plan.predictedSeconds())) {
                return objection;
            }
            outbox.refuse(objection);
        } catch (TaskRefused refused) {
            outbox.refuse(refused.refusal());
        } catch (ProblemAnswer problem) {
            if (problem.isDenied()) {
                throw problem;
            }
            outbox.refuse(new Refusal(Reason.BROKEN, problem.getMessage()));
        } finally {
            samples.forget();
        }
        idle.restart();
        return null;
    }

    private void download(ClientPlan plan, Deadline deadline) throws IOException {
        for (String digest : plan.artifacts()) {
            patience.until(client -> {
                deadline.check(0);
                return fetch(client, digest, deadline.secondsLeft());
            });
            idle.restart();
        }
        cache.trim(plan.artifacts());
    }

    private Boolean fetch(CoordinatorClient client, String digest, double seconds) {
        traffic.downloading(true);
        try {
            cache.fetch(client, enrolment.token(), ArtifactCache.ARTIFACTS, digest, seconds);
            return true;
        } catch (IOException error) {
            throw new TaskRefused(Reason.STORAGE, "the disk failed: " + error.getMessage());
        } finally {
            traffic.downloading(false);
        }
    }
}
