package org.edgefl.data;

/**
 * The samples of one training step.
 *
 * @param epoch the pass over the data, from 0
 * @param samples numbers of training samples, in the order drawn
 * @param seed for a graph with the input {@code seed}
 */
public record Batch(int epoch, int[] samples, long seed) {}
