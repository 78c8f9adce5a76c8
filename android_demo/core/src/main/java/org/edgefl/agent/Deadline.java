package org.edgefl.agent;

import org.edgefl.training.Interrupts;
import org.edgefl.values.Refusal;
import org.edgefl.values.TaskRefused;

/** When a task must end: by its plan, by its owner, or because the agent is stopped. Asked between steps. */
final class Deadline implements Interrupts {
    private static final double LOOK_EVERY = 2;
    private static final double NEARLY_DONE = 0.1;
    private static final double LONG_SECONDS = 2 * 3600;
    private static final double LONG_TIMES = 2;

    private final StopSignal stop;
    private final OwnerLimits limits;
    private final double planSeconds;
    private final double earlier;
    private final DeviceClock clock;
    private final double began;
    private double lookAt;
    private Refusal objection;

    /** The deadline of a task that arrived {@code earlier} seconds ago. */
    Deadline(StopSignal stop, OwnerLimits limits, double planSeconds, double earlier, DeviceClock clock) {
        this.stop = stop;
        this.limits = limits;
        this.planSeconds = planSeconds;
        this.earlier = earlier;
        this.clock = clock;
        this.began = clock.seconds();
    }

    private double elapsed() {
        return earlier + clock.seconds() - began;
    }

    /** Seconds that a download may take: until the first of the deadlines. */
    double secondsLeft() {
        return Math.max(1, Math.min(planSeconds, limits.secondsATask()) - elapsed());
    }

    /** Refuse to begin to train after the deadline. */
    void begin() {
        check(0);
        if (elapsed() >= planSeconds) {
            throw new TaskRefused(Refusal.Reason.DEADLINE, "its deadline passed before the training began");
        }
    }

    @Override
    public void check(double secondsLeft) {
        if (stop.isStopped()) {
            throw new Stopped();
        }
        double now = elapsed();
        if (now > limits.secondsATask()) {
            throw new TaskRefused(Refusal.Reason.DEADLINE, "the task took longer than the "
                + (long) (limits.secondsATask() / 60) + " minutes that the owner allows");
        }
        // A result that is a little late still counts while the round is open, so one that is nearly done goes on.
        double latest = planSeconds + NEARLY_DONE * Math.max(planSeconds, 10);
        if (now + secondsLeft > latest && now > NEARLY_DONE * planSeconds) {
            throw new TaskRefused(Refusal.Reason.DEADLINE, "it cannot be done within its deadline");
        }
        if (now >= lookAt) {
            lookAt = now + LOOK_EVERY;
            objection = limits.violated();
            if (objection != null) {
                throw new Stopped();
            }
        }
    }

    @Override
    public void onStop(Runnable cancel) {
        stop.onStop(cancel);
    }

    /** Why the owner's limits ended the work, or null if something else did. */
    Refusal objection() {
        return objection;
    }

    /**
     * Return whether a task waits until a condition of its owner holds again: if hours are left, and twice its time.
     *
     * <p>With less time a device refuses at once, so that the others of the round need not wait for it. A day's
     * traffic or energy, once spent, does not come back before the day is over.
     */
    boolean canWaitFor(Refusal refusal, double predictedSeconds) {
        boolean passing = refusal.isOwners() && refusal.reason() != Refusal.Reason.TRAFFIC
            && refusal.reason() != Refusal.Reason.ENERGY;
        double left = Math.min(planSeconds, limits.secondsATask()) - elapsed();
        return passing && left > Math.max(LONG_SECONDS, LONG_TIMES * predictedSeconds);
    }
}
