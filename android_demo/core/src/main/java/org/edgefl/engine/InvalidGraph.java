package org.edgefl.engine;

import org.edgefl.EdgeFLError;

/** A graph that breaks the contract of docs/graphs.md, or that the engine cannot run. */
public final class InvalidGraph extends EdgeFLError {
    /** What is wrong with it. */
    public InvalidGraph(String problem) {
        this(problem, null);
    }

    /** What the engine said about it. */
    public InvalidGraph(String problem, Throwable cause) {
        super("the graph cannot be run: " + problem, "Ask the operator to export the model again.", cause);
    }
}
