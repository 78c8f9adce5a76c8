package org.edgefl.training;

/** Told after every training step, on the training's own thread; must return at once. */
public interface StepListener {
    /**
     * A step has ended.
     *
     * @param step its number, from 1
     * @param steps the steps of the whole task
     * @param secondsLeft what the rest of the training is expected to take
     */
    void step(int step, int steps, double secondsLeft);
}
