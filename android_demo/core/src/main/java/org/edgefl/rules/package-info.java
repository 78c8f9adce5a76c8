/**
 * Training on the device, one method per file (docs/rules.md): arrays in, arrays out, float32 to the bit.
 *
 * <p>Knows neither files nor network, and no engine.
 */
package org.edgefl.rules;
