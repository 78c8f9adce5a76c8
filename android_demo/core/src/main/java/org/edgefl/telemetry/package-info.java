/** What a task costs: time, memory, energy, heat, bytes (docs/telemetry.md). Meters are seams that an app fills. */
package org.edgefl.telemetry;
