package org.edgefl.rules;

import java.util.Map;
import org.edgefl.wire.Tensor;

/**
 * What a graph returned for a batch.
 *
 * @param loss the mean loss of the batch; 0 if the graph returns features
 * @param gradients by the name of the tensor, without {@code grad:}
 * @param statistics new values by the name of the tensor, without {@code new:}
 * @param features what the head reads of every sample, if the graph returns that
 */
public record StepResult(
        float loss, Map<String, Tensor> gradients, Map<String, Tensor> statistics, float[][] features) {

    /** What a training graph returned. */
    public StepResult(float loss, Map<String, Tensor> gradients, Map<String, Tensor> statistics) {
        this(loss, gradients, statistics, new float[0][]);
    }

    /** What a feature graph returned. */
    public StepResult(float[][] features) {
        this(0, Map.of(), Map.of(), features);
    }
}
