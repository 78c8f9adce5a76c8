/**
 * One task from downloads to result, and its checkpoints.
 *
 * <p>What is in memory outside of the heap while a task is trained: the weights once, as they were read from the disk
 * and changed in place; gradients of the trained tensors; a batch; and what the rule remembers. For {@code sgd} and
 * {@code fine_tune} that is one copy of the trained tensors with momentum, and one with a proximal term; for
 * {@code masked_noise} the update u and the masked weights of the forward pass. {@code feature_sums} and {@code
 * head_gradients} have no gradients, and instead their sums, in double precision. For a moment there is more: a
 * checkpoint that is gone on with is read beside the weights, before the graph is loaded; and a sparse update has a
 * copy of the entries that it sends.
 */
package org.edgefl.training;
