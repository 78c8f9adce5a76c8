package org.edgefl.http;

import org.edgefl.EdgeFLError;

/** A code or link that is not a pairing URI. */
public final class InvalidPairing extends EdgeFLError {
    /** What is wrong with it; never shows the key. */
    public InvalidPairing(String problem) {
        super(problem, "Ask the operator for a new code, and copy all of it.");
    }
}
