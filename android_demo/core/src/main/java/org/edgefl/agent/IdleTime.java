package org.edgefl.agent;

/** How long an agent has had nothing to do, and when it ends for that. */
final class IdleTime {
    private final double most;
    private long since = System.nanoTime();

    /** An agent that ends after {@code most} seconds; 0 means never. */
    IdleTime(double most) {
        this.most = most;
    }

    /** Something was done: begin to count again. */
    void restart() {
        since = System.nanoTime();
    }

    boolean isOver() {
        return most > 0 && left() <= 0;
    }

    /** Return a pause that does not go beyond the end. */
    double atMost(double pause) {
        return most > 0 ? Math.max(0, Math.min(pause, left())) : pause;
    }

    private double left() {
        return most - (System.nanoTime() - since) / 1e9;
    }
}
