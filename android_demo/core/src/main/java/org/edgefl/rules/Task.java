package org.edgefl.rules;

import java.util.Map;
import org.edgefl.values.Submodel;

/**
 * What a rule needs to know of a plan.
 *
 * @param submodel the tensors, in the model's order
 * @param held packed bits of tensors that are not held completely
 * @param steps the number of steps of the whole task
 */
public record Task(Submodel submodel, Map<String, byte[]> held, long seed, int round, int rounds, int steps) {}
