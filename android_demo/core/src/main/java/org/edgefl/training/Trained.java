package org.edgefl.training;

import java.util.Map;
import org.edgefl.rules.RuleResult;
import org.edgefl.telemetry.StepTimes;

/**
 * A finished training.
 *
 * @param accuracy on the validation samples, or null
 * @param metrics further numbers for the report
 */
public record Trained(
        RuleResult result, int samples, int steps, double loss, Double accuracy, Map<String, Double> metrics,
        StepTimes times, double loadSeconds, double seconds) {}
