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
    private static final long MORE_THAN_HEADERS = 1 << 16;

    private final Parts parts;
    private final AgentSettings settings;
    private final TaskRunner runner;
    private final Status status;

    Work(Parts parts) {
        this.parts = parts;
        this.settings = parts.settings;
        this.runner = new TaskRunner(parts);
        this.status = parts.status;
    }

    /**
     * Bring the task to a result or a refusal on the disk.
     *
     * @return why it waits instead, or null: a condition of the owner does not hold, and there is time to wait
     */
    Refusal goOn(PendingTask pending) throws IOException {
        ClientPlan plan = pending.plan();
        Deadline deadline = new Deadline(parts.stop, settings.limits(), plan.deadlineSeconds(),
            pending.age(settings.clock()), settings.clock());
        try {
            deadline.begin();
            status.enter(Phase.DOWNLOADING, plan.round() + 1);
            download(plan, deadline);
            deadline.begin();
            status.enter(Phase.TRAINING, plan.round() + 1);
            Trained trained = runner.run(plan, parts.samples, deadline, status::step);
            parts.told.trainedOn(trained.samples());
            status.say(String.format("  %d steps, loss %.4f%s", trained.steps(), trained.loss(),
                trained.accuracy() == null ? "" : String.format(", accuracy %.3f", trained.accuracy())));
        } catch (Interrupts.Stopped stopped) {
            Refusal objection = deadline.objection();
            if (parts.stop.isStopped() || objection == null) {
                throw stopped;
            }
            if (deadline.canWaitFor(objection, plan.predictedSeconds())) {
                return objection;
            }
            parts.outbox.refuse(objection);
        } catch (TaskRefused refused) {
            parts.outbox.refuse(refused.refusal());
        } catch (ProblemAnswer problem) {
            if (problem.isDenied()) {
                throw problem;
            }
            parts.outbox.refuse(new Refusal(Reason.BROKEN, problem.getMessage()));
        } finally {
            parts.samples.forget();
        }
        parts.idle.restart();
        return null;
    }

    private void download(ClientPlan plan, Deadline deadline) throws IOException {
        parts.cache.keep(plan.artifacts());
        for (String digest : plan.artifacts()) {
            parts.patience.until(client -> {
                deadline.check(0);
                return fetch(client, digest, deadline);
            });
            parts.idle.restart();
        }
        parts.cache.trim();
    }

    private Boolean fetch(CoordinatorClient client, String digest, Deadline deadline) {
        long before = parts.traffic.down();
        parts.traffic.downloading(true);
        try {
            parts.cache.fetch(client, parts.enrolment.token(), ArtifactCache.ARTIFACTS, digest, deadline.secondsLeft(),
                () -> deadline.check(0));
            return true;
        } catch (IOException error) {
            throw new TaskRefused(Reason.STORAGE, "the disk failed: " + error.getMessage());
        } finally {
            parts.traffic.downloading(false);
            if (parts.traffic.down() - before > MORE_THAN_HEADERS) {
                parts.idle.restart(); // A large download that breaks off now and then is not idle.
            }
        }
    }
}
