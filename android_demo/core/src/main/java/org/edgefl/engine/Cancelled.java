package org.edgefl.engine;

/** A run of a graph that was ended from another thread: it has no result, and can be repeated. */
public final class Cancelled extends RuntimeException {
    /** A run that was ended. */
    public Cancelled() {
        super("the run was ended");
    }
}
