package org.edgefl.agent;

/** Told what an agent does, on the agent's own thread; must return at once. A screen or a notification listens. */
public interface Progress {
    /** The phases of joining and training. */
    enum Phase {
        /** Nothing runs. */
        IDLE,
        /** Measuring the device and enrolling. */
        JOINING,
        /** Asking for a task. */
        ASKING,
        /** A limit of the owner does not allow work now. */
        WAITING,
        /** Fetching what the task needs. */
        DOWNLOADING,
        /** Training. */
        TRAINING,
        /** Sending the result. */
        SENDING
    }

    /** A listener that does nothing. */
    Progress NONE = new Progress() {
        @Override
        public void enter(Phase phase, int round, String message) {}

        @Override
        public void step(int step, int steps, double secondsLeft) {}
    };

    /**
     * The agent begins a phase.
     *
     * @param round the round of its task, from 1; 0 without one
     * @param message the last thing worth telling: why it waits, how a task ended; empty if nothing is
     */
    void enter(Phase phase, int round, String message);

    /**
     * A training step has ended.
     *
     * @param steps the steps of the whole task
     * @param secondsLeft what the rest of the training is expected to take
     */
    void step(int step, int steps, double secondsLeft);
}
