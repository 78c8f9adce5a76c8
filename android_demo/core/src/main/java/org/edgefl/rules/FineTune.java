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
public final class FineTune extends DescentRule {
    /** The rule with its settings. */
    public FineTune(Settings settings, Task task) {
        super(settings, task);
        Sensitivity.refusePayloads(task);
        settings.choice("head", "train", "freeze", "head_only");
        settings.end();
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
