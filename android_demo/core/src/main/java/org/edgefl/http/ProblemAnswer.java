package org.edgefl.http;

import org.edgefl.EdgeFLError;

/** The coordinator's own no: a problem and what to do. The same request will not succeed later. */
public final class ProblemAnswer extends EdgeFLError {
    private final int status;

    /** A problem with its status. */
    public ProblemAnswer(int status, String problem, String fix) {
        super(problem, fix);
        this.status = status;
    }

    /** The HTTP status. */
    public int status() {
        return status;
    }

    /** Return whether the secret is not or no longer accepted: the device must join again. */
    public boolean isDenied() {
        return status == 401 || status == 403;
    }
}
