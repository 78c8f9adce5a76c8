package org.edgefl.agent;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Tells the agent's thread to end soon; from any thread. */
public final class StopSignal {
    private final CountDownLatch latch = new CountDownLatch(1);
    private Runnable cancel;

    /** Ask it to end, and end what can be ended in the middle. */
    public void stop() {
        latch.countDown();
        Runnable running;
        synchronized (this) {
            running = cancel;
        }
        if (running != null) {
            running.run();
        }
    }

    /** Set what ends the work under way, or null; called at once if the stop came before. */
    void onStop(Runnable work) {
        synchronized (this) {
            cancel = work;
        }
        if (work != null && isStopped()) {
            work.run();
        }
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
