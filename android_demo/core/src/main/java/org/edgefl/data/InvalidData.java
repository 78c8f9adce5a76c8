package org.edgefl.data;

import org.edgefl.EdgeFLError;

/** Samples that cannot be read, or that do not fit the federation. */
public final class InvalidData extends EdgeFLError {
    /** What is wrong, and what to do. */
    public InvalidData(String problem, String fix) {
        super(problem, fix);
    }
}
