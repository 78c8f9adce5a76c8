package org.edgefl.agent;

import java.util.Random;

/** How long to wait after failures in a row (docs/protocol.md, "When to retry"). */
final class Backoff {
    private static final double LONGEST = 300;
    private static final double MOST_ASKED_FOR = 3600;

    private final Random random = new Random();
    private double next = 1;

    /** Return the seconds to wait after one more failure; {@code retryAfter} is what the response asked for, or 0. */
    double failed(double retryAfter) {
        double wait = next * (0.5 + 0.5 * random.nextDouble());
        next = Math.min(2 * next, LONGEST);
        if (retryAfter > 0) {
            wait = Math.max(wait, Math.min(retryAfter * (1 + 0.1 * random.nextDouble()), MOST_ASKED_FOR));
        }
        return wait;
    }

    /** Begin again after a success. */
    void succeeded() {
        next = 1;
    }
}
