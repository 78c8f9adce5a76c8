/**
 * Training on the device, one method per file (docs/rules.md): arrays in, arrays out, float32 to the bit.
 *
 * <p>{@link org.edgefl.rules.ForwardRule}s train nothing: they sum up what the model makes of the samples, in float64.
 *
 * <p>Knows neither files nor network, and no engine.
 */
package org.edgefl.rules;
