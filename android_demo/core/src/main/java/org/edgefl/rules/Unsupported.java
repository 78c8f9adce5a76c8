package org.edgefl.rules;

import org.edgefl.EdgeFLError;

/** Something that a plan asks for and this client cannot do. */
public final class Unsupported extends EdgeFLError {
    /** What it cannot do. */
    public Unsupported(String problem) {
        super(problem, "Update this client, or ask the operator for another strategy.");
    }
}
