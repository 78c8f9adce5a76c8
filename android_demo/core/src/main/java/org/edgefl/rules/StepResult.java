package org.edgefl.rules;

import java.util.Map;
import org.edgefl.wire.Tensor;

/**
 * What a training graph returned.
 *
 * @param gradients by the name of the tensor, without {@code grad:}
 * @param statistics new values by the name of the tensor, without {@code new:}
 */
public record StepResult(float loss, Map<String, Tensor> gradients, Map<String, Tensor> statistics) {}
