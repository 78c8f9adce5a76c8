package org.edgefl.http;

import org.edgefl.EdgeFLError;

/** No usable response: no connection, a busy coordinator, or a proxy's page. Worth another try later. */
public final class Unreachable extends EdgeFLError {
    private final double retryAfterSeconds;

    /** What happened, and how long to wait at least. */
    public Unreachable(String problem, double retryAfterSeconds, Throwable cause) {
        super(problem, "It is tried again. If it stays so, check the network and the coordinator.", cause);
        this.retryAfterSeconds = retryAfterSeconds;
    }

    /** Seconds that the coordinator asked to wait; 0 if it did not. */
    public double retryAfterSeconds() {
        return retryAfterSeconds;
    }
}
