package org.edgefl.profile;

/**
 * One measured case: the work of a step, and what it took.
 *
 * @param group cases of one graph and one set of weights
 * @param value seconds, or peak bytes
 */
public record Measured(
        String group, double forward, double backward, double activations, double parameterBytes, double trained,
        double value) {}
