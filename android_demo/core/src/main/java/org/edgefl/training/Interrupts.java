package org.edgefl.training;

/** Asked between steps whether to go on: the owner's limits, the deadline, a stop. */
public interface Interrupts {
    /**
     * Return normally to go on.
     *
     * @param secondsLeft what the rest of the training is expected to take
     * @throws Stopped to keep a checkpoint and end for now
     * @throws org.edgefl.values.TaskRefused to give the task up
     */
    void check(double secondsLeft);

    /**
     * Called with what ends a step under way, from any thread, and with null when there is no step any more.
     *
     * <p>A training that is never stopped from outside need not listen.
     */
    default void onStop(Runnable cancel) {}

    /** Training ends for now; its checkpoint stays. */
    final class Stopped extends RuntimeException {
        /** A stop. */
        public Stopped() {
            super("stopped");
        }
    }
}
