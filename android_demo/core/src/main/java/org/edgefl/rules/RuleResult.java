package org.edgefl.rules;

import java.util.Map;
import java.util.SortedMap;
import org.edgefl.wire.Encoded;
import org.edgefl.wire.Tensor;

/**
 * What a task ends with.
 *
 * @param sent the tensors of the update
 * @param own the device's own model: every tensor of the submodel
 * @param metrics further numbers for the report
 */
public record RuleResult(SortedMap<String, Encoded> sent, Map<String, Tensor> own, Map<String, Double> metrics) {}
