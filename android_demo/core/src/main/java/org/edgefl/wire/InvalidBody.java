package org.edgefl.wire;

import org.edgefl.EdgeFLError;

/** Bytes that break the wire format. */
public final class InvalidBody extends EdgeFLError {
    /** What is wrong with them. */
    public InvalidBody(String problem) {
        super("not a valid body: " + problem, "Download it again, or ask the operator for another one.");
    }
}
