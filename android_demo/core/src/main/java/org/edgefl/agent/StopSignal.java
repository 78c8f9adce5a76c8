package org.edgefl.agent;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Tells the agent's thread to end soon; from any thread. */
public final class StopSignal {
    private final CountDownLatch latch = new CountDownLatch(1);

    /** Ask it to end. */
    public void stop() {
        latch.countDown();
    }

    /** Return whether it was asked to end. */
    public boolean isStopped() {
        return latch.getCount() == 0;
    }

    /** Wait, but not longer than until a stop. Return whether there was one. */
    public boolean sleep(double seconds) {
        try {
            return latch.await((long) (1000 * Math.max(seconds, 0)), TimeUnit.MILLISECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return true;
        }
    }
}
