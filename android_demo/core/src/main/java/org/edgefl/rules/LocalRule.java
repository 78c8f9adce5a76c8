package org.edgefl.rules;

import java.util.List;
import java.util.Map;
import org.edgefl.wire.Tensor;

/** What happens around the training steps of a task. A rule has no state of its own that a checkpoint would need. */
public interface LocalRule {
    /** Return the weights that the graph gets in every step. The rule changes them in place. */
    Map<String, Tensor> forward(State state);

    /** Prepare {@link #forward} for a step. */
    void prepare(State state, int step);

    /** Apply what the graph returned for a step whose batch has some labels, and return the mean loss of the batch. */
    double step(State state, int step, StepResult result, Tensor labels);

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
            case FeatureSums.NAME -> new FeatureSums(settings, task);
            case HeadGradients.NAME -> new HeadGradients(settings, task);
            case ClassPrior.NAME -> new ClassPrior(settings, task);
            default -> throw new Unsupported("this client does not have the rule '" + name + "'");
        };
    }

    /** Return whether a rule only runs the model forward: its graph returns features, and every sample counts once. */
    static boolean onlyForward(String name) {
        return List.of(FeatureSums.NAME, HeadGradients.NAME, ClassPrior.NAME).contains(name);
    }

    /** Return whether the device has a new model after a task by a rule. */
    static boolean changesModel(String name) {
        return !List.of(FeatureSums.NAME, HeadGradients.NAME).contains(name);
    }

    /** Return whether a rule reads further arrays of the plan. */
    static boolean readsExtras(String name) {
        return List.of(HeadGradients.NAME, ClassPrior.NAME).contains(name);
    }
}
