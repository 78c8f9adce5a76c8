package org.edgefl.rules;

import java.util.LinkedHashMap;
import java.util.Map;
import org.edgefl.wire.Tensor;

/**
 * Everything that changes while a task is trained: one checkpoint holds it, whatever the rule.
 *
 * @param weights every tensor of the submodel, changed in place
 * @param memory what the rule remembers, such as {@code momentum:NAME}
 */
public record State(Map<String, Tensor> weights, Map<String, Tensor> memory) {
    /** A state that begins with downloaded weights. */
    public static State of(Map<String, Tensor> weights) {
        return new State(weights, new LinkedHashMap<>());
    }

    /** Return a tensor of the rule's memory; the first time, zeros in the shape of another. */
    Tensor remembered(String name, Tensor like) {
        return memory.computeIfAbsent(name, made -> Tensor.zeros(like.dtype(), like.shape()));
    }
}
