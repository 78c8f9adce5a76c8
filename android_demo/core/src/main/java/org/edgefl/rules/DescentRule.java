package org.edgefl.rules;

import java.util.Map;
import org.edgefl.wire.Tensor;

/** Gradient descent from the weights as they were sent. A rule adds its own settings and what it does at the end. */
abstract class DescentRule implements LocalRule {
    /** The descent that moves the weights. */
    protected final GradientDescent descent;
    private boolean begun;

    protected DescentRule(Settings settings, Task task) {
        this.descent = new GradientDescent(settings, task);
    }

    @Override
    public Map<String, Tensor> forward(State state) {
        if (!begun) {
            descent.begin(state.weights());
            begun = true;
        }
        return state.weights();
    }

    @Override
    public void prepare(State state, int step) {
        // The weights are those of the step before.
    }

    @Override
    public double step(State state, int step, StepResult result, Tensor labels) {
        descent.step(state, step, result, Map.of());
        return result.loss();
    }
}
