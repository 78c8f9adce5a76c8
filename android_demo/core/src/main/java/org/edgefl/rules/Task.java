package org.edgefl.rules;

import java.util.Map;
import org.edgefl.values.Submodel;
import org.edgefl.wire.Tensor;

/**
 * What a rule needs to know of a plan.
 *
 * @param submodel the tensors, in the model's order
 * @param held packed bits of tensors that are not held completely
 * @param steps the number of steps of the whole task
 * @param extras further arrays that the plan brings
 */
public record Task(Submodel submodel, Map<String, byte[]> held, long seed, int round, int rounds, int steps,
        Map<String, Tensor> extras) {

    /** A task whose plan brings no further arrays. */
    public Task(Submodel submodel, Map<String, byte[]> held, long seed, int round, int rounds, int steps) {
        this(submodel, held, seed, round, rounds, steps, Map.of());
    }
}
