package org.edgefl.rules;

import java.util.Map;
import org.edgefl.wire.Tensor;

/** What happens around the training steps of a task. A rule has no state of its own that a checkpoint would need. */
public interface LocalRule {
    /** Return the weights that the graph gets in every step. The rule changes them in place. */
    Map<String, Tensor> forward(State state);

    /** Prepare {@link #forward} for a step. */
    void prepare(State state, int step);

    /** Apply what the graph returned for a step. */
    void step(State state, int step, StepResult result);

    /** End the task after its last step. */
    RuleResult finish(State state);

    /** Whether the report has the accuracy before the first step. */
    default boolean evaluatesBefore() {
        return false;
    }

    /** Return the rule of a name, or refuse it. */
    static LocalRule of(String name, Settings settings, Task task) {
        return switch (name) {
            case "sgd" -> new Sgd(settings, task);
            case "fine_tune" -> new FineTune(settings, task);
            case "masked_noise" -> new MaskedNoise(settings, task);
            default -> throw new Unsupported("this client does not have the rule '" + name + "'");
        };
    }
}
