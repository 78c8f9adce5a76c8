package org.edgefl.values;

import org.edgefl.EdgeFLError;

/** This device does not do a task, for a reason that the protocol knows. */
public final class TaskRefused extends EdgeFLError {
    private final Refusal refusal;

    /** A refusal, as an error that ends the task. */
    public TaskRefused(Refusal.Reason reason, String message) {
        super(message, "Nothing needs to be done: the coordinator is told.");
        this.refusal = new Refusal(reason, message);
    }

    /** What the coordinator is told. */
    public Refusal refusal() {
        return refusal;
    }
}
