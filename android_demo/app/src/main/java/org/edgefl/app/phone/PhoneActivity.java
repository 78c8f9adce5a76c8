package org.edgefl.app.phone;

import org.edgefl.agent.Progress.Phase;

/**
 * What a phone is doing now.
 *
 * @param round the round of the task, from 1; 0 without one
 * @param steps the steps of the whole task; 0 if that is not known yet
 * @param secondsLeft what the rest of the training is expected to take; NaN if that is not known yet
 * @param message the last thing worth telling: why it waits, how it ended, what went wrong; empty if nothing is
 */
public record PhoneActivity(Phase phase, int round, int step, int steps, double secondsLeft, String message) {
    /** Nothing has happened yet. */
    public static final PhoneActivity IDLE = new PhoneActivity(Phase.IDLE, 0, 0, 0, Double.NaN, "");

    /** Whether something runs that the owner can stop. */
    public boolean isBusy() {
        return phase != Phase.IDLE;
    }
}
