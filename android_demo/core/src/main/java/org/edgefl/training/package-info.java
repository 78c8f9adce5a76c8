/** One task from its downloads to its result: trainer, checkpoints, evaluation. Knows no network. */
package org.edgefl.training;
