package org.edgefl.rules;

import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.edgefl.wire.Names;
import org.edgefl.wire.Tensor;

/**
 * Adapts the model to the device's own data after the last round. Nothing is sent (docs/rules.md).
 *
 * <p>What is trained follows from the submodel document and the graph, {@code head} included.
 */
public final class FineTune implements LocalRule {
    private final GradientDescent descent;
    private boolean begun;

    /** The rule with its settings. */
    public FineTune(Settings settings, Task task) {
        this.descent = new GradientDescent(settings, task);
        settings.choice("head", "train", "freeze", "head_only");
        settings.end();
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
    public void step(State state, int step, StepResult result) {
        descent.step(state, step, result, Map.of());
    }

    @Override
    public RuleResult finish(State state) {
        for (Map.Entry<String, Tensor> entry : state.weights().entrySet()) {
            if (!entry.getValue().isFinite()) {
                throw new Diverged("'" + entry.getKey() + "' is no longer finite");
            }
        }
        return new RuleResult(new TreeMap<>(Names.UTF8_ORDER), state.weights(), new HashMap<>());
    }

    @Override
    public boolean evaluatesBefore() {
        return true;
    }
}
