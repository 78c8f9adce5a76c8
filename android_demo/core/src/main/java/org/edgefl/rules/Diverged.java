package org.edgefl.rules;

import org.edgefl.EdgeFLError;

/** Training left the finite numbers. */
public final class Diverged extends EdgeFLError {
    /** Where it happened. */
    public Diverged(String problem) {
        super(problem, "Ask the operator for a lower learning rate.");
    }
}
