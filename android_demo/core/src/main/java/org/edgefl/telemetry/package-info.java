/**
 * What a task costs: time, memory, energy, heat, bytes (docs/telemetry.md).
 *
 * <p>{@link org.edgefl.telemetry.Meters} is the seam that an app fills, with sections that
 * {@link org.edgefl.telemetry.TelemetrySections} makes.
 */
package org.edgefl.telemetry;
