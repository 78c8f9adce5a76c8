package org.edgefl.json;

import org.edgefl.EdgeFLError;

/** Text that is not JSON, or not the JSON that was asked for. */
public final class InvalidJson extends EdgeFLError {
    /** What is wrong with it. */
    public InvalidJson(String problem) {
        super(problem, "Check that client and coordinator have versions that fit, and try again.");
    }
}
